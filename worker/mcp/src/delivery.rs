//! Records whether each request was sent, and the progress that the server reports. The record proves that a call failed, or that its
//! outcome is indeterminate.
//!
//! The errors of rmcp do not show whether a request was never sent, was lost, or was cut off. Therefore the transports record here
//! what they do with each request. A request that was abandoned before it was sent is never sent later.

use crate::notification::ServerMessage;
use bloomery_engine::event::ToolProgress;
use bloomery_http::progress::{Progress, ProgressObserver};
use rmcp::model::{ClientJsonRpcMessage, GetMeta, JsonRpcMessage, ProgressToken, RequestId};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// The largest number of buffered progress reports of one call. At the limit, a new report replaces the latest.
pub(crate) const MAX_BUFFERED_PROGRESS: usize = 32;

/// The largest number of requests of a server whose ids are recorded.
const MAX_SERVER_REQUESTS: usize = 64;

/// What the transport has recorded about a request without an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Delivery {
    /// No byte of the request was sent, and none will be. Holds the reason as a clause.
    NotSent(String),
    /// The request was sent, or may have been.
    Sent,
    /// The request was sent, and then its connection or its answer broke. Holds the reason as a clause.
    Broken(String),
    /// The server answered that it has not applied the request (HTTP 401). Holds the reason as a clause.
    Unauthorized(String),
    /// The server answered that it does not know the session of the request (HTTP 404).
    SessionUnknown,
}

/// When the retry of a failed request may get another answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Retry {
    /// Soon: the server may only have been restarted.
    #[default]
    Soon,
    /// After somebody has corrected the credentials.
    AfterCorrection,
    /// Never: the server redirects, is no MCP server, requires credentials that will never exist, or is a program that does not run.
    Never,
}

/// Returns the id of a request, and the token of its progress. Both are `None` for a message that is not a request.
pub(crate) fn request_ids(message: &ClientJsonRpcMessage) -> (Option<RequestId>, Option<ProgressToken>) {
    match message {
        JsonRpcMessage::Request(request) => (Some(request.id.clone()), request.request.get_meta().get_progress_token()),
        _ => (None, None),
    }
}

/// The record of a request.
#[derive(Debug)]
enum Record {
    /// The request was abandoned before it was sent.
    Abandoned,
    /// The request is running.
    Running(Running),
}

/// A running request.
#[derive(Debug)]
struct Running {
    delivery: Delivery,
    token: Option<ProgressToken>,
    progress: Vec<ToolProgress>,
    is_cancelled: bool,
    /// The id of the last event that was read from the stream of its answer.
    last_event: Option<String>,
}

/// The records of one session's requests. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct DeliveryLog(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    records: Mutex<Records>,
    changed: Notify,
    observer: ProgressObserver,
}

#[derive(Debug, Default)]
struct Records {
    requests: HashMap<RequestId, Record>,
    last_error: Option<String>,
    /// The requests of the server. Their ids are independent of those of the client.
    server_requests: HashSet<RequestId>,
    tools_changed: bool,
    has_server_state: bool,
    retry: Retry,
}

impl DeliveryLog {
    /// Creates an empty log. It reports progress to `observer`.
    pub(crate) fn with_observer(observer: &ProgressObserver) -> Self {
        Self(Arc::new(Shared { observer: observer.clone(), ..Shared::default() }))
    }

    /// Records that a request is about to be sent. Returns false if the request was abandoned and must not be sent.
    pub(crate) fn begin(&self, id: &RequestId, token: Option<ProgressToken>) -> bool {
        self.with(|records| {
            if matches!(records.requests.get(id), Some(Record::Abandoned)) {
                return false;
            }
            let running = Running {
                delivery: Delivery::Sent,
                token,
                progress: Vec::new(),
                is_cancelled: false,
                last_event: None,
            };
            records.requests.insert(id.clone(), Record::Running(running));
            true
        })
    }

    /// Records the delivery of a running request, or that of a message without id.
    pub(crate) fn record(&self, id: Option<&RequestId>, delivery: Delivery) {
        self.with(|records| {
            if let Delivery::NotSent(reason) | Delivery::Unauthorized(reason) | Delivery::Broken(reason) = &delivery {
                records.last_error = Some(reason.clone());
            }
            if let Some(running) = id.and_then(|id| records.running(id)) {
                running.delivery = delivery;
            }
        });
    }

    /// Records that the server keeps a state for the session.
    pub(crate) fn record_server_state(&self) {
        self.with(|records| records.has_server_state = true);
    }

    /// Returns whether the server keeps a state for the session.
    pub(crate) fn has_server_state(&self) -> bool {
        self.with(|records| records.has_server_state)
    }

    /// Records when a retry may get another answer.
    pub(crate) fn record_retry(&self, retry: Retry) {
        self.with(|records| records.retry = retry);
    }

    /// Returns when a retry may get another answer.
    pub(crate) fn retry(&self) -> Retry {
        self.with(|records| records.retry)
    }

    /// Records a message of the server. `stream` identifies the request on whose stream the message arrived, if known.
    pub(crate) fn receive(&self, stream: Option<&RequestId>, message: ServerMessage) {
        if let ServerMessage::Progress(_, progress) | ServerMessage::Log(progress) = &message {
            self.0.observer.notify(|| Progress::ToolProgressed(progress.clone()));
        }
        self.with(|records| records.receive(stream, message));
        self.0.changed.notify_waiters();
    }

    /// Records the id of the last event that was read from the stream of a request's answer.
    pub(crate) fn record_event(&self, id: &RequestId, event: &str) {
        self.with(|records| {
            if let Some(running) = records.running(id) {
                running.last_event = Some(event.to_owned());
            }
        });
    }

    /// Returns the request whose stream last delivered `event`.
    pub(crate) fn request_of_event(&self, event: &str) -> Option<RequestId> {
        let matches_event = |record: &Record| matches!(record, Record::Running(running) if running.last_event.as_deref() == Some(event));
        self.with(|records| records.requests.iter().find(|(_, record)| matches_event(record)).map(|(id, _)| id.clone()))
    }

    /// Waits until the server cancels a request.
    pub(crate) async fn cancelled(&self, id: &RequestId) {
        loop {
            let changed = self.0.changed.notified();
            if self.with(|records| records.running(id).is_some_and(|running| running.is_cancelled)) {
                return;
            }
            changed.await;
        }
    }

    /// Waits for progress of a request, and removes it from the log.
    pub(crate) async fn take_progress(&self, id: &RequestId) -> Vec<ToolProgress> {
        loop {
            let changed = self.0.changed.notified();
            let progress =
                self.with(|records| records.running(id).map(|running| std::mem::take(&mut running.progress)));
            if let Some(progress) = progress.filter(|progress| !progress.is_empty()) {
                return progress;
            }
            changed.await;
        }
    }

    /// Ends a request, and returns its delivery and the rest of its progress. A request that was not sent yet is never sent.
    pub(crate) fn finish(&self, id: &RequestId) -> (Delivery, Vec<ToolProgress>) {
        self.with(|records| match records.requests.remove(id) {
            Some(Record::Running(running)) => (running.delivery, running.progress),
            Some(Record::Abandoned) | None => {
                records.requests.insert(id.clone(), Record::Abandoned);
                (Delivery::NotSent("the call was abandoned before it was sent".to_owned()), Vec::new())
            }
        })
    }

    /// Records that no running request will get an answer.
    pub(crate) fn break_all(&self, reason: &str) {
        self.with(|records| {
            records.last_error = Some(reason.to_owned());
            for record in records.requests.values_mut() {
                if let Record::Running(running @ Running { delivery: Delivery::Sent, .. }) = record {
                    running.delivery = Delivery::Broken(reason.to_owned());
                }
            }
        });
    }

    /// Returns whether the server announced a change of its tools, and clears the announcement.
    pub(crate) fn take_tools_changed(&self) -> bool {
        self.with(|records| std::mem::take(&mut records.tools_changed))
    }

    /// Returns whether the server announced a change of its tools since the last [`DeliveryLog::take_tools_changed`].
    pub(crate) fn tools_changed(&self) -> bool {
        self.with(|records| records.tools_changed)
    }

    /// Returns the latest error of any message.
    pub(crate) fn last_error(&self) -> Option<String> {
        self.with(|records| records.last_error.clone())
    }

    fn with<T>(&self, act: impl FnOnce(&mut Records) -> T) -> T {
        act(&mut self.0.records.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Records {
    fn running(&mut self, id: &RequestId) -> Option<&mut Running> {
        match self.requests.get_mut(id) {
            Some(Record::Running(running)) => Some(running),
            Some(Record::Abandoned) | None => None,
        }
    }

    /// Returns the running request if there is exactly one.
    fn only_running(&self) -> Option<RequestId> {
        let mut running_ids =
            self.requests.iter().filter(|(_, record)| matches!(record, Record::Running(_))).map(|(id, _)| id);
        let first = running_ids.next()?;
        running_ids.next().is_none().then(|| first.clone())
    }

    fn receive(&mut self, stream: Option<&RequestId>, message: ServerMessage) {
        match message {
            ServerMessage::Progress(token, progress) => {
                // The token identifies the request. The stream does not matter.
                let with_token = self.requests.values_mut().find_map(|record| match record {
                    Record::Running(running) if running.token.as_ref() == Some(&token) => Some(running),
                    _ => None,
                });
                if let Some(running) = with_token {
                    running.push_progress(progress);
                }
            }
            ServerMessage::Log(progress) => {
                // A program has one stream for all answers. A line on it is assigned to a request only if exactly one is running.
                let stream = stream.cloned().or_else(|| self.only_running());
                if let Some(running) = stream.and_then(|id| self.running(&id)) {
                    running.push_progress(progress);
                }
            }
            ServerMessage::Request(id) => {
                if self.server_requests.len() < MAX_SERVER_REQUESTS {
                    self.server_requests.insert(id);
                }
            }
            ServerMessage::ToolsChanged => self.tools_changed = true,
            ServerMessage::Cancelled(id, reason) => {
                // The server cancels a request of its own. A request of the client may have the same id.
                if self.server_requests.remove(&id) {
                    return;
                }
                if let Some(running) = self.running(&id) {
                    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
                    running.delivery = Delivery::Broken(format!("it cancelled the call{reason}"));
                    running.is_cancelled = true;
                }
            }
        }
    }
}

impl Running {
    fn push_progress(&mut self, progress: ToolProgress) {
        if self.progress.len() == MAX_BUFFERED_PROGRESS {
            self.progress.pop();
        }
        self.progress.push(progress);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: i64) -> RequestId {
        RequestId::Number(n)
    }

    fn token(n: i64) -> ProgressToken {
        ProgressToken(id(n))
    }

    fn progress(progress: f64) -> ToolProgress {
        ToolProgress { progress: Some(progress), ..ToolProgress::default() }
    }

    #[test]
    fn a_request_that_began_may_have_been_sent() {
        let log = DeliveryLog::default();
        assert!(log.begin(&id(1), None));
        assert_eq!(log.finish(&id(1)).0, Delivery::Sent);
    }

    #[test]
    fn finish_returns_the_recorded_delivery() {
        let log = DeliveryLog::default();
        assert!(log.begin(&id(1), None) && log.begin(&id(2), None));
        log.record(Some(&id(1)), Delivery::NotSent("refused".into()));
        log.record(Some(&id(2)), Delivery::Broken("reset".into()));
        assert_eq!(log.finish(&id(1)).0, Delivery::NotSent("refused".into()));
        assert_eq!(log.finish(&id(2)).0, Delivery::Broken("reset".into()));
        assert_eq!(log.last_error().as_deref(), Some("reset"));
    }

    #[test]
    fn break_all_does_not_change_a_request_that_was_not_sent() {
        let log = DeliveryLog::default();
        assert!(log.begin(&id(1), None) && log.begin(&id(2), None));
        log.record(Some(&id(1)), Delivery::NotSent("full".into()));
        log.break_all("it ended");
        assert_eq!(log.finish(&id(1)).0, Delivery::NotSent("full".into()));
        assert_eq!(log.finish(&id(2)).0, Delivery::Broken("it ended".into()));
        assert_eq!(log.last_error().as_deref(), Some("it ended"));
    }

    #[test]
    fn a_request_that_was_abandoned_is_never_sent() {
        let log = DeliveryLog::default();
        assert!(matches!(log.finish(&id(1)).0, Delivery::NotSent(_)));
        assert!(!log.begin(&id(1), None));
        assert!(log.begin(&id(2), None));
    }

    #[test]
    fn progress_is_assigned_by_its_token_and_a_log_line_by_its_stream() {
        let log = DeliveryLog::default();
        assert!(log.begin(&id(1), Some(token(11))) && log.begin(&id(2), Some(token(12))));
        log.receive(Some(&id(2)), ServerMessage::Progress(token(11), progress(1.0)));
        log.receive(Some(&id(2)), ServerMessage::Progress(token(99), progress(2.0)));
        log.receive(Some(&id(2)), ServerMessage::Log(progress(3.0)));
        log.receive(None, ServerMessage::Log(progress(4.0)));
        assert_eq!(log.finish(&id(1)).1, [progress(1.0)]);
        assert_eq!(log.finish(&id(2)).1, [progress(3.0)]);
    }

    #[test]
    fn at_the_limit_a_new_report_replaces_the_latest() {
        let log = DeliveryLog::default();
        assert!(log.begin(&id(1), Some(token(1))));
        for n in 0..100 {
            log.receive(None, ServerMessage::Progress(token(1), progress(f64::from(n))));
        }
        let (_, kept) = log.finish(&id(1));
        assert_eq!(kept.len(), MAX_BUFFERED_PROGRESS);
        assert_eq!((kept[0].clone(), kept[MAX_BUFFERED_PROGRESS - 1].clone()), (progress(0.0), progress(99.0)));
    }

    #[tokio::test]
    async fn each_report_is_taken_once_and_as_soon_as_it_arrives() {
        let log = DeliveryLog::default();
        assert!(log.begin(&id(1), Some(token(1))));
        let waiting = log.clone();
        let (taken, ()) = tokio::join!(async move { waiting.take_progress(&id(1)).await }, async {
            log.receive(None, ServerMessage::Progress(token(1), progress(1.0)));
        });
        assert_eq!(taken, [progress(1.0)]);
        log.receive(None, ServerMessage::Progress(token(1), progress(2.0)));
        assert_eq!(log.finish(&id(1)).1, [progress(2.0)]);
    }

    #[tokio::test]
    async fn a_server_cancels_a_request_of_the_client_or_one_of_its_own() {
        let log = DeliveryLog::default();
        assert!(log.begin(&id(1), None));
        log.receive(Some(&id(1)), ServerMessage::Request(id(1)));
        log.receive(Some(&id(1)), ServerMessage::Cancelled(id(1), None));
        assert!(!log.with(|records| records.running(&id(1)).unwrap().is_cancelled));
        let (waiting, ours) = (log.clone(), id(1));
        tokio::join!(async move { waiting.cancelled(&ours).await }, async {
            log.receive(None, ServerMessage::Cancelled(id(1), Some("shutdown".into())));
        });
        assert_eq!(log.finish(&id(1)).0, Delivery::Broken("it cancelled the call: shutdown".into()));
    }
}
