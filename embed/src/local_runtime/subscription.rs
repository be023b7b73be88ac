//! Subscriptions to the events of a Job.

use super::feed::{Feed, News};
use super::jobs::Log;
use crate::cursor::Cursor;
use crate::error::{Error, ErrorKind};
use crate::event::JobEvent;
use futures::stream::{self, BoxStream};
use std::collections::VecDeque;
use std::sync::Arc;
use tokio::sync::watch;

/// A subscriber of a feed. It keeps at most one segment of the log.
#[derive(Debug)]
struct Subscription {
    feed: Arc<Feed>,
    changes: watch::Receiver<()>,
    /// The log, for events that the feed does not have any more.
    log: Log,
    /// Events from the log.
    past: VecDeque<Arc<JobEvent>>,
    /// The position of the client.
    cursor: Cursor,
    /// True once the client has waited for a new event. If the feed then loses events before the client takes them, the client is too slow.
    has_caught_up: bool,
    /// True after the last event of the Job, or an error.
    has_ended: bool,
}

/// Returns the events of a feed after a cursor, and each further event, until the Job ends. `log` is the log of the Job at its beginning.
pub(super) fn subscribe(feed: Arc<Feed>, log: Log, after: Cursor) -> BoxStream<'static, Result<Arc<JobEvent>, Error>> {
    let (changes, past) = (feed.changes(), VecDeque::new());
    let subscription = Subscription { feed, changes, log, past, cursor: after, has_caught_up: false, has_ended: false };
    Box::pin(stream::unfold(subscription, next))
}

/// Returns the next event. Waits for it, unless the Job has ended.
async fn next(mut subscription: Subscription) -> Option<(Result<Arc<JobEvent>, Error>, Subscription)> {
    while !subscription.has_ended {
        if let Some(event) = subscription.past.pop_front() {
            return Some(subscription.deliver(event));
        }
        match subscription.feed.news(subscription.cursor) {
            News::Event(event) => return Some(subscription.deliver(event)),
            News::End(Ok(())) => return None,
            News::End(Err(error)) => return Some(subscription.fail(error)),
            News::Gone if subscription.has_caught_up => {
                let error = too_slow(subscription.cursor);
                return Some(subscription.fail(error));
            }
            News::Gone => match subscription.read_past().await? {
                (returned, Ok(())) => subscription = returned,
                (returned, Err(error)) => return Some(returned.fail(error)),
            },
            News::Pending { is_live } => {
                subscription.has_caught_up |= is_live;
                subscription.changes.changed().await.ok()?;
            }
        }
    }
    None
}

impl Subscription {
    /// Returns an event with the subscription after it.
    fn deliver(mut self, event: Arc<JobEvent>) -> (Result<Arc<JobEvent>, Error>, Self) {
        self.cursor = Cursor::after(event.seq);
        self.has_ended = event.is_last;
        (Ok(event), self)
    }

    /// Returns an error with the subscription after it.
    fn fail(mut self, error: Error) -> (Result<Arc<JobEvent>, Error>, Self) {
        self.has_ended = true;
        (Err(error), self)
    }

    /// Reads the next segment of the log. Returns `None` if the runtime of tokio ends.
    async fn read_past(self) -> Option<(Self, Result<(), Error>)> {
        let (log, read, _) = self.log.read().await?;
        let cursor = self.cursor;
        let mut past = self.past;
        let read = read.map(|segment| {
            past.extend(segment.into_iter().flatten().filter(|event| cursor.lacks(event.seq)).map(Arc::new));
        });
        Some((Self { log, past, ..self }, read))
    }
}

/// Returns the error of a client that takes events more slowly than the Job records them.
fn too_slow(cursor: Cursor) -> Error {
    let message =
        format!("the subscriber is too slow, and was dropped after the event {cursor}: subscribe again after it");
    Error::new(ErrorKind::Unavailable, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_engine::Event;
    use bloomery_engine::event::CallId;
    use bloomery_engine::line::{Chain, Entry, EventTime};
    use bloomery_journal::segment;
    use futures::{FutureExt, StreamExt};
    use std::fs;
    use std::path::Path;

    const SOURCE: &str = "/namespaces/local/skilljobs/k/k";

    /// Returns the data of an event of which a feed keeps only one.
    fn large(text: &str) -> Event {
        Event::ToolCompleted { call: CallId::new(1, 0), text: text.repeat(700 << 10) }
    }

    fn stamp() -> EventTime {
        EventTime { time: "2026-01-01T00:00:00Z".into(), elapsed_ms: 1 }
    }

    fn event(seq: u64) -> JobEvent {
        JobEvent::new(SOURCE, &Entry { seq, stamp: stamp(), event: large("x") }).unwrap()
    }

    fn log(dir: &Path) -> Log {
        Log::new(dir.to_owned(), SOURCE.to_owned())
    }

    #[tokio::test]
    async fn a_slow_subscriber_is_dropped_at_its_position_and_delays_no_other() {
        let dir = tempfile::tempdir().unwrap();
        let feed = Arc::new(Feed::new());
        feed.add(Ok(Some(vec![event(1)])));
        feed.add(Ok(None));
        let subscribe = || subscribe(Arc::clone(&feed), log(dir.path()), Cursor::START);
        let (mut slow, mut quick) = (subscribe(), subscribe());
        assert_eq!(slow.next().await.unwrap().unwrap().seq, 1);
        assert!(slow.next().now_or_never().is_none(), "it waits for the next event");
        assert_eq!(quick.next().await.unwrap().unwrap().seq, 1);
        for seq in 2..=4 {
            feed.add(Ok(Some(vec![event(seq)])));
            assert_eq!(quick.next().now_or_never().unwrap().unwrap().unwrap().seq, seq);
        }
        let error = slow.next().await.unwrap().unwrap_err();
        assert_eq!(error.kind, ErrorKind::Unavailable);
        assert!(error.message.contains("after the event 1:"), "{error}");
        assert!(slow.next().await.is_none());
    }

    #[tokio::test]
    async fn a_new_subscriber_reads_older_events_from_the_log() {
        let dir = tempfile::tempdir().unwrap();
        let mut chain = Chain::new(SOURCE);
        for text in ["x", "y", "z"] {
            let (line, entry) = chain.append(large(text), stamp()).unwrap();
            fs::write(dir.path().join(segment::name(entry.seq)), format!("{line}\n")).unwrap();
        }
        let feed = Arc::new(Feed::new());
        let mut reader = log(dir.path());
        while let Some(segment) = reader.next_segment().unwrap() {
            feed.add(Ok(Some(segment)));
        }
        feed.add(Ok(None));
        assert!(matches!(feed.news(Cursor::START), News::Gone));
        let mut events = subscribe(Arc::clone(&feed), log(dir.path()), Cursor::after(1));
        for seq in [2, 3] {
            assert_eq!(events.next().await.unwrap().unwrap().seq, seq);
        }
        feed.add(Err(Error::failed("the log is broken")));
        assert_eq!(events.next().await.unwrap().unwrap_err().message, "the log is broken");
        assert!(events.next().await.is_none());
    }
}
