//! Feeds: the events of a Job, which one reader reads for all its subscribers.

use super::jobs::Log;
use super::polls::Polls;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::event::JobEvent;
use futures::future;
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;
use tokio::sync::{Notify, watch};

/// The time without a new segment after which the log of a Job that this process does not drive is checked for a missing one.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The size of the recent events that a feed keeps, in bytes of JSON. It keeps the last segment of the log in any case.
const MAX_BYTES: usize = 1 << 20;

/// The feeds of Jobs with subscribers, by key.
#[derive(Debug, Default)]
pub(super) struct Feeds {
    feeds: Mutex<BTreeMap<String, Weak<Feed>>>,
    /// The next segments of Jobs that this process does not drive.
    polls: Polls,
}

impl Feeds {
    /// Returns the feed of a Job. If it has none, a reader begins to read `log`, and ends when the feed is dropped. `is_driven` returns
    /// whether this process drives the Job and wakes the feed.
    pub(super) fn join(&self, key: &str, log: Log, is_driven: impl Fn() -> bool + Send + 'static) -> Arc<Feed> {
        let mut feeds = self.feeds();
        let existing = feeds.get(key).and_then(Weak::upgrade);
        // A new feed tries again to read a log that could not be read.
        if let Some(feed) = existing.filter(|feed| !matches!(feed.state().end, Some(Err(_)))) {
            return feed;
        }
        feeds.retain(|_, feed| feed.strong_count() > 0);
        let feed = Arc::new(Feed::new());
        feeds.insert(key.to_owned(), Arc::downgrade(&feed));
        let reader = Reader { feed: Arc::downgrade(&feed), wake: Arc::clone(&feed.wake), polls: self.polls.clone() };
        tokio::spawn(reader.read(log, is_driven));
        feed
    }

    /// Makes the reader of a Job read on.
    pub(super) fn wake(&self, key: &str) {
        if let Some(feed) = self.feeds().get(key).and_then(Weak::upgrade) {
            feed.wake.notify_one();
        }
    }

    fn feeds(&self) -> MutexGuard<'_, BTreeMap<String, Weak<Feed>>> {
        self.feeds.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The recent events of a Job. Subscribers take events at their own pace. A slow subscriber costs the others nothing.
#[derive(Debug)]
pub(super) struct Feed {
    state: Mutex<FeedState>,
    /// Changes when there is news for subscribers.
    changed: watch::Sender<()>,
    wake: Arc<Notify>,
}

#[derive(Debug, Default)]
struct FeedState {
    /// The recent events without gaps.
    recent: VecDeque<Arc<JobEvent>>,
    bytes: usize,
    /// True once the reader has reached the end of the log.
    is_live: bool,
    /// The end of the Job, or the error of the log, after the recent events.
    end: Option<Result<(), Error>>,
}

/// The news of a feed for a subscriber.
#[derive(Debug)]
pub(super) enum News {
    /// The next event.
    Event(Arc<JobEvent>),
    /// The feed does not have the next event any more.
    Gone,
    /// There is no next event yet.
    Pending {
        /// Whether the reader has reached the end of the log.
        is_live: bool,
    },
    /// The Job has ended, or its log cannot be read.
    End(Result<(), Error>),
}

impl Feed {
    /// Creates a feed without events.
    pub(super) fn new() -> Self {
        Self { state: Mutex::default(), changed: watch::Sender::new(()), wake: Arc::default() }
    }

    /// Returns a receiver of the message that there is news.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Returns the news for a subscriber at a cursor.
    pub(super) fn news(&self, after: Cursor) -> News {
        let state = self.state();
        let next = after.next_seq();
        let at = match state.recent.front() {
            Some(first) if next < first.seq => return News::Gone,
            Some(first) => usize::try_from(next - first.seq).unwrap_or(usize::MAX),
            None => 0,
        };
        match (state.recent.get(at), &state.end) {
            (Some(event), _) => News::Event(Arc::clone(event)),
            (None, Some(end)) => News::End(end.clone()),
            (None, None) => News::Pending { is_live: state.is_live },
        }
    }

    /// Adds the result of a read: a segment, the end of the log so far, or an error. Returns whether there can be no further events.
    pub(super) fn add(&self, read: Result<Option<Vec<JobEvent>>, Error>) -> bool {
        let mut state = self.state();
        match read {
            Ok(Some(segment)) => state.add(segment),
            Ok(None) if state.is_live => return false,
            Ok(None) => state.is_live = true,
            Err(error) => state.end = Some(Err(error)),
        }
        let has_ended = state.end.is_some();
        drop(state);
        self.changed.send_replace(());
        has_ended
    }

    fn state(&self) -> MutexGuard<'_, FeedState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FeedState {
    /// Adds a segment, and removes older events that are too many.
    fn add(&mut self, segment: Vec<JobEvent>) {
        let kept = segment.len();
        for event in segment {
            if event.is_last {
                self.end = Some(Ok(()));
            }
            self.bytes += event.json().len();
            self.recent.push_back(Arc::new(event));
        }
        while self.bytes > MAX_BYTES && self.recent.len() > kept {
            self.bytes -= self.recent.pop_front().map_or(0, |event| event.json().len());
        }
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        // Ends the reader.
        self.wake.notify_one();
    }
}

/// Reads the log of a Job for its feed.
#[derive(Debug)]
struct Reader {
    feed: Weak<Feed>,
    wake: Arc<Notify>,
    polls: Polls,
}

impl Reader {
    /// Reads a log until the Job ends, the log cannot be read, or the feed is dropped.
    async fn read(self, mut log: Log, is_driven: impl Fn() -> bool) {
        let mut has_caught_up = false;
        loop {
            let Some((returned, segment, next)) = log.read().await else { return };
            log = returned;
            has_caught_up |= matches!(segment, Ok(None));
            if self.feed.upgrade().is_none_or(|feed| feed.add(segment)) {
                return;
            }
            if has_caught_up && let Some(next) = next {
                self.wait(next, is_driven()).await;
            }
        }
    }

    /// Waits for the next segment, or until it is time to read on in any case.
    async fn wait(&self, next: PathBuf, is_driven: bool) {
        if is_driven {
            return self.wake.notified().await;
        }
        // This process may begin to drive the Job meanwhile.
        let woken = pin!(self.wake.notified());
        let found = pin!(self.polls.wait_for(next));
        let _ = tokio::time::timeout(CHECK_INTERVAL, future::select(woken, found)).await;
    }
}
