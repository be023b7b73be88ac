//! The events of a Job for all of its subscribers, and the subscribers whose credentials read them.

use super::window::{Next, Window};
use crate::cluster::{Cluster, state};
use crate::error::Error;
use crate::event::JobEvent;
use bloomery_crds::v1alpha1::Job;
use bloomery_engine::line;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// The size of the events that a feed keeps, in bytes of the log.
const MAX_BYTES: usize = 4 << 20;

/// A task that is aborted when this value is dropped.
#[derive(Debug)]
pub(super) struct Task(pub(super) AbortHandle);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The events of a Job, and its subscribers.
pub(super) struct Feed {
    state: Mutex<State>,
    /// Changes with each event and each subscriber.
    changed: watch::Sender<()>,
    /// Held by the subscriber whose reader pod reads the log. The others wait.
    pub(super) reader: tokio::sync::Mutex<()>,
}

struct State {
    window: Window<Arc<JobEvent>>,
    members: BTreeMap<u64, Member>,
    next_member: u64,
    /// The reason why no further event arrives.
    failure: Option<Error>,
}

/// A subscriber.
struct Member {
    cluster: Cluster,
    /// The reason why the API server refuses the requests of the subscriber.
    refusal: Option<Error>,
}

/// A subscriber whose credentials may read the events for all.
pub(super) enum Reader {
    /// This one, with its number.
    Member(u64, Box<Cluster>),
    /// There are no subscribers.
    Nobody,
    /// The API server refuses all of them, for this reason.
    Refused(Error),
}

/// The place of a subscriber in a feed, which ends when this value is dropped.
pub(super) struct Place {
    /// The feed.
    pub(super) feed: Arc<Feed>,
    id: u64,
    /// The task that reads the events for all subscribers. It ends with the last place.
    _upstream: Arc<Task>,
}

impl Drop for Place {
    fn drop(&mut self) {
        self.feed.state().members.remove(&self.id);
        self.feed.notify();
    }
}

impl Feed {
    /// Creates a feed without events.
    pub(super) fn new() -> Self {
        let state = State { window: Window::new(MAX_BYTES), members: BTreeMap::new(), next_member: 0, failure: None };
        Self { state: Mutex::new(state), changed: watch::Sender::new(()), reader: tokio::sync::Mutex::new(()) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn notify(&self) {
        // This does nothing without receivers.
        self.changed.send_replace(());
    }

    /// Returns the receiver of the changes of the feed.
    pub(super) fn changes(&self) -> watch::Receiver<()> {
        self.changed.subscribe()
    }

    /// Adds a subscriber.
    pub(super) fn enter(self: &Arc<Self>, cluster: Cluster, upstream: Arc<Task>) -> Place {
        let mut state = self.state();
        let id = state.next_member;
        state.next_member += 1;
        state.members.insert(id, Member { cluster, refusal: None });
        drop(state);
        self.notify();
        Place { feed: Arc::clone(self), id, _upstream: upstream }
    }

    /// Returns the subscriber whose credentials read the events.
    pub(super) fn pick(&self) -> Reader {
        let state = self.state();
        let mut refusal = None;
        for (id, member) in &state.members {
            match &member.refusal {
                None => return Reader::Member(*id, Box::new(member.cluster.clone())),
                Some(error) => refusal = Some(error.clone()),
            }
        }
        refusal.map_or(Reader::Nobody, Reader::Refused)
    }

    /// Returns whether a subscriber is still there.
    pub(super) fn has_member(&self, id: u64) -> bool {
        self.state().members.contains_key(&id)
    }

    /// Records that the API server refuses the requests of a subscriber.
    pub(super) fn refuse(&self, id: u64, error: Error) {
        if let Some(member) = self.state().members.get_mut(&id) {
            member.refusal = Some(error);
        }
    }

    /// Adds the event of a line of the log, and returns it. Returns `None` for any other line, such as one for people.
    pub(super) fn add(&self, text: &[u8]) -> Option<Arc<JobEvent>> {
        let (source, entry) = line::read_alone(str::from_utf8(text).ok()?).ok()?;
        let event = Arc::new(JobEvent::new(&source, &entry).ok()?);
        self.state().window.add(event.seq, Arc::clone(&event), text.len());
        self.notify();
        Some(event)
    }

    /// Records that no pod delivers the events that the status of a Job counts.
    pub(super) fn expect(&self, job: &Job) {
        let log = job.status.as_ref().and_then(|status| status.log.as_ref());
        let is_new = self.state().window.expect(log.map_or(0, |log| log.events), state::has_ended(job));
        // Each subscriber calls this each minute.
        if is_new {
            self.notify();
        }
    }

    /// Records that no further event arrives.
    pub(super) fn fail(&self, error: Error) {
        self.state().failure = Some(error);
        self.notify();
    }

    /// Returns whether the feed has failed.
    pub(super) fn has_failed(&self) -> bool {
        self.state().failure.is_some()
    }

    /// Returns the next action of a subscriber whose last event is `seq`.
    ///
    /// # Errors
    /// If no further event arrives.
    pub(super) fn after(&self, seq: u64, max: usize) -> Result<Next<Arc<JobEvent>>, Error> {
        let state = self.state();
        match (state.window.after(seq, max), &state.failure) {
            (Next::Wait, Some(error)) => Err(error.clone()),
            (next, _) => Ok(next),
        }
    }
}
