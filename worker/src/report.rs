//! Reports the state of the run to the operator (`docs/explanation/engine.md`, section 6).
//!
//! A separate task sends the latest projection of the log. It does not block the run: if the operator is unreachable, the run
//! continues. Only the end waits for an acknowledgement, for a limited time.

mod client;
mod report_sender;
mod schedule;

pub use client::{Client, Error, SendError};
pub use report_sender::Identity;

use crate::driver::{ChildDesk, DecisionInbox, Observer};
use crate::housekeeping::SurveyLink;
use crate::stop::Stop;
use bloomery_crds::children::ChildRequest;
use bloomery_crds::report::{ExternalWait, HeldCallDetails, PodEnd, Projection};
use report_sender::ReportSender;
use schedule::ReportState;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// The state to report, and the task that reports it.
#[derive(Debug)]
pub struct Reporter {
    state: watch::Sender<ReportState>,
    end_acknowledged: watch::Receiver<bool>,
}

impl Reporter {
    /// Starts the task that reports, with `first` as the state at the claim of the epoch.
    ///
    /// The task turns the operator's responses into requests to `stop`: another attempt has taken over, the Job is cancelled, its Skill is
    /// deleted, or its namespace is suspended. It passes replies of people to `inbox`, and the states of children to `desk`.
    /// It sends the surveys of `link` with reports that are due anyway, and passes the operator's answer to it.
    pub fn start(
        client: Client,
        identity: Identity,
        first: Projection,
        stop: Stop,
        (inbox, desk, link): (Arc<DecisionInbox>, Arc<ChildDesk>, SurveyLink),
    ) -> Self {
        let first = ReportState { projection: first, waiting: None, hold: None, children: Vec::new(), end: None };
        let (state, latest) = watch::channel(first);
        let (acknowledges, end_acknowledged) = watch::channel(false);
        let sender =
            ReportSender { client, identity, state: latest, end_acknowledged: acknowledges, stop, inbox, desk, link };
        tokio::spawn(sender.run());
        Self { state, end_acknowledged }
    }

    /// Sets the held call for which the pod ends. It is reported with the end.
    pub fn set_held_call(&self, hold: HeldCallDetails) {
        self.change(|state| set(&mut state.hold, Some(hold)));
    }

    /// Reports how the pod ends, and waits until the operator has acknowledged the complete log. Returns whether it has.
    pub async fn end(mut self, projection: Projection, end: PodEnd, within: Duration) -> bool {
        self.change(|state| {
            let hold = state.hold.take();
            // The next attempt waits for the children of a parked one.
            let children = std::mem::take(&mut state.children);
            let children = if matches!(end, PodEnd::Parked(_)) { children } else { Vec::new() };
            set(state, ReportState { projection, waiting: None, hold, children, end: Some(end) })
        });
        let acknowledged = self.end_acknowledged.wait_for(|acknowledged| *acknowledged);
        matches!(tokio::time::timeout(within, acknowledged).await, Ok(Ok(_)))
    }

    fn change(&self, change: impl FnOnce(&mut ReportState) -> bool) {
        self.state.send_if_modified(change);
    }
}

impl Observer for Reporter {
    fn state_changed(&self, projection: Projection) {
        self.change(|state| set(&mut state.projection, projection));
    }

    fn waiting(&self, waiting: Option<ExternalWait>) {
        self.change(|state| set(&mut state.waiting, waiting));
    }

    fn children(&self, children: Vec<ChildRequest>) {
        self.change(|state| set(&mut state.children, children));
    }
}

/// Sets a value. Returns whether it has changed.
fn set<T: PartialEq>(place: &mut T, value: T) -> bool {
    *place != value && {
        *place = value;
        true
    }
}

#[cfg(test)]
mod tests;
