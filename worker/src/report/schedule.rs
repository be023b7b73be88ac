//! Schedules reports: the state to report, and the time of the next report.

use bloomery_crds::children::ChildRequest;
use bloomery_crds::report::{ExternalWait, HeldCallDetails, PodEnd, Projection};
use std::time::Duration;
use tokio::time::Instant;

/// The interval of reports and heartbeats. The operator can reach a worker only in the responses to them.
///
/// It is less than 5 s (`docs/explanation/engine.md`, section 6), so that a worker ends within 10 s of a cancellation during a call with an
/// effect.
pub const INTERVAL: Duration = Duration::from_secs(4);

/// The interval of reports while the run waits for a child. The operator answers each when the child has ended, and at once if it is of an
/// earlier version.
const CHILD_INTERVAL: Duration = Duration::from_secs(1);

/// The delay of the first report. Without it, the TLS handshake of the report would delay the first request to the model.
const FIRST_REPORT_DELAY: Duration = Duration::from_millis(20);

/// The latest state to report. Every event in it is durable.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportState {
    /// The state of the conversation.
    pub projection: Projection,
    /// The external wait of the run.
    pub waiting: Option<ExternalWait>,
    /// The held call for which the pod ends.
    pub hold: Option<HeldCallDetails>,
    /// The requests for the children whose ends the log lacks.
    pub children: Vec<ChildRequest>,
    /// The end of the pod, once it ends.
    pub end: Option<PodEnd>,
}

impl ReportState {
    /// Returns whether the run waits for a child. The operator may then hold the report open.
    pub fn waits_for_children(&self) -> bool {
        !self.children.is_empty() && self.end.is_none()
    }

    /// Returns whether the change since `sent` is reported at once, because people wait for it. Other changes are reported within
    /// [`INTERVAL`].
    fn is_urgent(&self, sent: &Self) -> bool {
        self.projection.phase != sent.projection.phase
            || self.projection.outcome != sent.projection.outcome
            || self.waiting != sent.waiting
            || (self.children != sent.children && self.waits_for_children())
            || self.end != sent.end
    }
}

/// The latest report that the operator has accepted.
#[derive(Debug, Clone)]
pub struct SentReport {
    /// The state in it.
    pub state: ReportState,
    /// The time at which it was accepted.
    pub at: Instant,
}

/// Returns the time of the next report. `started` is the time at which the sender started. An unchanged state is repeated as a heartbeat.
pub fn next_report_at(state: &ReportState, sent: Option<&SentReport>, started: Instant) -> Instant {
    match sent {
        None if state.waiting.is_some() || state.end.is_some() => started,
        None => started + FIRST_REPORT_DELAY,
        Some(sent) if state.is_urgent(&sent.state) => sent.at,
        Some(sent) if state.waits_for_children() => sent.at + CHILD_INTERVAL,
        Some(sent) => sent.at + INTERVAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::{child_request, projection};
    use bloomery_crds::outcome::Phase;

    fn state(phase: Phase, events: u64) -> ReportState {
        let projection = Projection { phase, ..projection(events) };
        ReportState { projection, waiting: None, hold: None, children: Vec::new(), end: None }
    }

    #[tokio::test]
    async fn urgent_changes_are_due_at_once_and_all_others_within_five_seconds() {
        assert!(INTERVAL < Duration::from_secs(5));
        let at = Instant::now();
        let sent = SentReport { state: state(Phase::Running, 3), at };
        let same = sent.state.clone();
        assert_eq!(next_report_at(&same, Some(&sent), at), at + INTERVAL);
        assert_eq!(next_report_at(&state(Phase::Running, 4), Some(&sent), at), at + INTERVAL);
        assert_eq!(next_report_at(&state(Phase::Finalizing, 4), Some(&sent), at), at);
        let waiting = Some(ExternalWait::McpUnavailable { message: "refused".into() });
        assert_eq!(next_report_at(&ReportState { waiting, ..same.clone() }, Some(&sent), at), at);
        assert_eq!(next_report_at(&ReportState { end: Some(PodEnd::Finished), ..same.clone() }, Some(&sent), at), at);
    }

    #[tokio::test]
    async fn a_report_about_a_new_child_is_due_at_once_and_again_soon() {
        let at = Instant::now();
        let sent = SentReport { state: state(Phase::Running, 3), at };
        let waits = ReportState { children: vec![child_request()], ..sent.state.clone() };
        assert_eq!(next_report_at(&waits, Some(&sent), at), at);
        let again = SentReport { state: waits.clone(), at };
        assert_eq!(next_report_at(&waits, Some(&again), at), at + CHILD_INTERVAL);
        assert_eq!(next_report_at(&sent.state, Some(&again), at), at + INTERVAL);
        assert!(!ReportState { end: Some(PodEnd::Finished), ..waits }.waits_for_children());
    }

    #[tokio::test]
    async fn the_first_report_is_delayed_unless_the_run_waits_or_ends() {
        let at = Instant::now();
        let first = state(Phase::Running, 1);
        assert_eq!(next_report_at(&first, None, at), at + FIRST_REPORT_DELAY);
        let waiting = Some(ExternalWait::McpUnavailable { message: "refused".into() });
        assert_eq!(next_report_at(&ReportState { waiting, ..first.clone() }, None, at), at);
        assert_eq!(next_report_at(&ReportState { end: Some(PodEnd::Finished), ..first }, None, at), at);
    }
}
