//! The task that sends the latest state to the operator.

use super::client::{Client, SendError};
use super::schedule::{ReportState, SentReport, next_report_at};
use crate::driver::{ChildDesk, DecisionInbox};
use crate::housekeeping::SurveyLink;
use crate::stop::{Stop, StopReason};
use bloomery_crds::children::WAIT_SECONDS;
use bloomery_crds::report::{Directives, PodEnd, Report};
use bloomery_crds::run::JobIdentity;
use bloomery_http::Backoff;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// The delay before a retry that the operator asks for.
const REQUESTED_RETRY_DELAY: Duration = Duration::from_millis(500);

/// The number of retries in a row with [`REQUESTED_RETRY_DELAY`]. Later ones use the backoff.
const MAX_REQUESTED_RETRIES: u32 = 8;

/// The number of permanent refusals in a row after which an end is not reported again.
const MAX_PERMANENT_REFUSALS: u32 = 4;

/// Identifies the worker that reports.
#[derive(Debug, Clone)]
pub struct Identity {
    /// The Job.
    pub job: JobIdentity,
    /// The attempt.
    pub attempt: u32,
    /// The epoch that the attempt has claimed.
    pub epoch: u64,
}

/// Sends the worker's state to the operator.
#[derive(Debug)]
pub(super) struct ReportSender {
    pub client: Client,
    pub identity: Identity,
    pub state: watch::Receiver<ReportState>,
    /// Becomes true once the operator has accepted the report of the end and acknowledged all events.
    pub end_acknowledged: watch::Sender<bool>,
    pub stop: Stop,
    /// Receives the replies of people.
    pub inbox: Arc<DecisionInbox>,
    /// Receives the states of children.
    pub desk: Arc<ChildDesk>,
    /// Has the surveys of the Skill's memory, each of which is sent once.
    pub link: SurveyLink,
}

impl ReportSender {
    /// Sends the latest state, and a heartbeat when nothing changed, until the report of the end is acknowledged, this attempt is
    /// superseded, or the [`Reporter`](super::Reporter) is dropped. A state that is replaced before it is due is never sent.
    pub async fn run(mut self) {
        let started = Instant::now();
        let mut sent: Option<SentReport> = None;
        let mut failures = Failures::default();
        loop {
            let due = next_report_at(&self.state.borrow_and_update(), sent.as_ref(), started).max(failures.not_before);
            let changed = tokio::select! {
                () = tokio::time::sleep_until(due) => None,
                changed = self.state.changed() => Some(changed),
            };
            match changed {
                Some(Ok(())) => continue,
                Some(Err(_)) => return,
                None => {}
            }
            let state = self.state.borrow_and_update().clone();
            let mut newer = self.state.clone();
            let sent_now = tokio::select! {
                sent_now = self.send(&state) => sent_now,
                // The operator may hold the report open, and answers a report of the newer state the same.
                _ = newer.changed(), if state.waits_for_children() => continue,
            };
            match sent_now {
                Ok(_) if state.end.is_none() => {
                    failures.clear();
                    sent = Some(SentReport { state, at: Instant::now() });
                }
                Ok(true) => return,
                Ok(false) => failures.add(&SendError::Unacknowledged),
                Err(error @ SendError::Superseded(_)) => {
                    tracing::warn!("{error}");
                    return self.stop.request(StopReason::Superseded);
                }
                Err(error) => {
                    failures.add(&error);
                    if state.end.is_some() && failures.are_permanent() {
                        return;
                    }
                }
            }
        }
    }

    /// Sends one report. Returns whether it is acknowledged: the operator has written all its events to the Job, or does not need them.
    async fn send(&mut self, state: &ReportState) -> Result<bool, SendError> {
        let Identity { job, attempt, epoch } = self.identity.clone();
        let wait_seconds = if state.waits_for_children() { WAIT_SECONDS } else { 0 };
        let ReportState { projection, waiting, hold, children, end } = state.clone();
        let (events, is_end) = (projection.log.events, end.is_some());
        let parks = matches!(end, Some(PodEnd::Parked(_)));
        // An error means that there is no housekeeper.
        // A report that is held open may be given up, and would lose the survey.
        let is_new = wait_seconds == 0 && self.link.surveys.has_changed().unwrap_or(false);
        let memory = if is_new { self.link.surveys.borrow_and_update().clone() } else { None };
        let report = Report { job, attempt, epoch, projection, waiting, hold, memory, children, wait_seconds, end };
        let sent = self.client.send(&report).await;
        if sent.is_err() && report.memory.is_some() {
            self.link.surveys.mark_changed();
        }
        let directives = sent?;
        // The operator does not need the end of a parked pod if the Job is to end.
        let acknowledged = directives.ack >= events || (parks && (directives.cancel || directives.skill_deleted));
        self.follow(directives);
        if is_end && acknowledged {
            self.end_acknowledged.send_replace(true);
        }
        Ok(acknowledged)
    }

    /// Turns the operator's directives into requests to stop. The operator repeats them in every response, and [`Stop`] ignores repetitions.
    fn follow(&self, directives: Directives) {
        if directives.cancel {
            self.stop.request(StopReason::Cancelled);
        }
        if directives.skill_deleted {
            self.stop.request(StopReason::SkillDeleted);
        }
        if directives.park {
            self.stop.request(StopReason::Suspended);
        }
        self.inbox.add_replies(directives.replies);
        self.desk.add(directives.children);
        if !directives.prune.is_empty() {
            // A failure means that nobody prunes any more.
            let _ = self.link.prune.send(directives.prune);
        }
        self.inbox.add_blocked_tools(directives.blocked_tools);
        if let Some(policy) = directives.tenant_tools {
            self.inbox.add_tenant_tools(policy);
        }
        if let Some(limits) = directives.limits {
            self.inbox.add_limits(limits);
        }
    }
}

/// The failures since the last accepted report.
#[derive(Debug)]
struct Failures {
    /// The earliest time of the next report.
    not_before: Instant,
    backoff: Backoff,
    /// The number of times in a row that the operator asked for a retry.
    requested_retries: u32,
    /// The latest message, so that repetitions are not logged.
    latest: Option<String>,
    /// The number of permanent refusals in a row.
    permanent: u32,
}

impl Default for Failures {
    fn default() -> Self {
        let backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(10));
        Self { not_before: Instant::now(), backoff, requested_retries: 0, latest: None, permanent: 0 }
    }
}

impl Failures {
    fn add(&mut self, error: &SendError) {
        self.requested_retries = if error.asks_for_retry() { self.requested_retries + 1 } else { 0 };
        let is_soon = (1..=MAX_REQUESTED_RETRIES).contains(&self.requested_retries);
        let delay = if is_soon { REQUESTED_RETRY_DELAY } else { self.backoff.next_delay() };
        self.permanent = if error.is_permanent() { self.permanent + 1 } else { 0 };
        self.not_before = Instant::now() + delay;
        let text = error.to_string();
        if self.latest.as_ref() != Some(&text) {
            tracing::warn!("a report was not accepted, and the worker retries: {text}");
            self.latest = Some(text);
        }
    }

    /// Returns whether a retry is pointless. A single refusal may come from a stale cache of the operator.
    fn are_permanent(&self) -> bool {
        self.permanent >= MAX_PERMANENT_REFUSALS
    }

    fn clear(&mut self) {
        self.backoff.reset();
        (self.requested_retries, self.permanent) = (0, 0);
        if self.latest.take().is_some() {
            tracing::info!("reports are accepted again");
        }
    }
}
