//! Subscriptions to the events of a Job.

use super::jobs::Log;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::event::JobEvent;
use futures::stream::{self, BoxStream};
use std::collections::VecDeque;
use std::time::Duration;

/// The interval at which a log is read. Any process may write it, so no channel of this process can replace the interval.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// A reader of a log.
#[derive(Debug)]
struct Subscription {
    log: Log,
    after: Cursor,
    events: VecDeque<JobEvent>,
    /// True after the last event of the Job, or an error.
    has_ended: bool,
}

/// Returns the events of a log after a cursor, and each further event, until the Job ends.
pub(super) fn subscribe(log: Log, after: Cursor) -> BoxStream<'static, Result<JobEvent, Error>> {
    let subscription = Subscription { log, after, events: VecDeque::new(), has_ended: false };
    Box::pin(stream::unfold(subscription, next))
}

/// Returns the next event. Waits for it, unless the Job has ended.
async fn next(mut subscription: Subscription) -> Option<(Result<JobEvent, Error>, Subscription)> {
    loop {
        if let Some(event) = subscription.events.pop_front() {
            return Some((Ok(event), subscription));
        }
        if subscription.has_ended {
            return None;
        }
        // This fails if the runtime ends.
        let (returned, read) = tokio::task::spawn_blocking(move || subscription.read()).await.ok()?;
        subscription = returned;
        match read {
            Ok(true) => {}
            Ok(false) => tokio::time::sleep(POLL_INTERVAL).await,
            Err(error) => {
                subscription.has_ended = true;
                return Some((Err(error), subscription));
            }
        }
    }
}

impl Subscription {
    /// Reads the next segment. Returns whether there was one.
    fn read(mut self) -> (Self, Result<bool, Error>) {
        let segment = match self.log.next_segment() {
            Ok(Some(segment)) => segment,
            Ok(None) => return (self, Ok(false)),
            Err(error) => return (self, Err(error)),
        };
        let after = self.after;
        self.has_ended = segment.iter().any(|event| event.is_last);
        self.events.extend(segment.into_iter().filter(|event| after.lacks(event.seq)));
        (self, Ok(true))
    }
}
