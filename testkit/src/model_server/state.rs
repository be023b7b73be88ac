//! The state that all requests share: the records for tests, and the place of each conversation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bloomery_crds::Digest;
use bloomery_crds::v1alpha1::Stage;
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::answer::Answer;
use super::cache::{Cache, Cached};
use super::check::{self, Earlier};
use super::error::ApiError;
use super::place::Place;
use super::records::{Held, Requests};
use super::request::{ANONYMOUS, Protocol, Request};
use super::script::Times;
use super::violation::{Broken, Rule, Violation, Violations};
use super::{stage, wire};

/// The most violations that are kept; later ones are only counted.
const KEPT_VIOLATIONS: usize = 1_000;

/// The server's memory; clones share it.
#[derive(Clone)]
pub(super) struct ServerState {
    notes: Arc<Mutex<Notes>>,
    /// Rung at every release.
    released: Arc<Notify>,
    pub(super) stop: CancellationToken,
}

#[derive(Default)]
struct Notes {
    violations: Violations,
    requests: Requests,
    /// The last request of each user to each provider: a model of another gets the conversation in another form.
    earlier: BTreeMap<(String, Protocol), Earlier>,
    /// The different requests of each stage but the main loop.
    asked: BTreeMap<(String, Stage), Vec<Digest>>,
    /// Which conversation of the script a user is in.
    conversations: BTreeMap<String, String>,
    served: BTreeMap<FaultPlace, u32>,
    cache: Cache,
    released: BTreeSet<String>,
    held: BTreeMap<u64, Held>,
    next_held: u64,
}

/// The place of one fault. It is counted for each conversation of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FaultPlace {
    pub(super) user: String,
    pub(super) conversation: String,
    pub(super) place: Place,
    /// Which of the faults of its turn it is.
    pub(super) index: usize,
}

impl ServerState {
    pub(super) fn new(stop: CancellationToken) -> Self {
        Self { notes: Arc::default(), released: Arc::default(), stop }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request and holds it against the rules and the one before; gives its place.
    ///
    /// # Errors
    /// It broke one: the error says all of them. Such a request is not what later ones are held
    /// against.
    pub(super) fn receive(&self, request: &Request) -> Result<Place, ApiError> {
        let mut notes = self.notes();
        let place = notes.place(request);
        notes.requests.by_user(request.user_name()).count(place);
        notes.requests.total += 1;
        // Only the main loop has a history that grows: the other stages ask anew each time.
        let history = (request.user_name().to_owned(), request.protocol);
        let earlier = notes.earlier.get(&history).filter(|_| place.stage == Stage::Plan);
        let broken = check::check(request, earlier);
        if !broken.is_empty() {
            return Err(notes.refuse(request.user_name(), place, broken));
        }
        if place.stage == Stage::Plan && request.user.is_some() {
            notes.earlier.insert(history, Earlier::new(request));
        }
        Ok(place)
    }

    /// Returns the conversation of the script that this user is in, if it is known.
    pub(super) fn conversation_of(&self, request: &Request) -> Option<String> {
        self.notes().conversations.get(request.user.as_ref()?).cloned()
    }

    /// Notes which conversation of the script a user is in.
    pub(super) fn is_in(&self, request: &Request, conversation: &str) {
        if let Some(user) = &request.user {
            self.notes().conversations.insert(user.clone(), conversation.to_owned());
        }
    }

    /// Records a body that is no request.
    pub(super) fn refuse_unreadable(&self, why: String) -> ApiError {
        let mut notes = self.notes();
        notes.requests.total += 1;
        notes.refuse(ANONYMOUS, Place::default(), vec![(Rule::Readable, why)])
    }

    /// Records a request that the script has no answer for.
    pub(super) fn refuse(&self, request: &Request, place: Place, (rule, why): Broken) -> ApiError {
        self.notes().refuse(request.user_name(), place, vec![(rule, why)])
    }

    /// Counts what the cache has of a prompt, and keeps there what the prompt marks.
    pub(super) fn cached(&self, request: &Request) -> Cached {
        self.notes().cache.count(&request.model, &wire::parts(request))
    }

    /// Notes that a request gets its scripted answer, and what of it has to come back.
    pub(super) fn answered(&self, request: &Request, place: Place, answer: &Answer) {
        if place.stage != Stage::Plan {
            return;
        }
        let mut notes = self.notes();
        notes.requests.by_user(request.user_name()).answered += 1;
        if let Some(earlier) = notes.earlier.get_mut(&(request.user_name().to_owned(), request.protocol)) {
            earlier.thoughts = wire::thoughts(request, answer);
        }
    }

    /// Returns the number of requests so far.
    pub(super) fn total(&self) -> u64 {
        self.notes().requests.total
    }

    /// Takes one serving of a fault; false once they are spent.
    pub(super) fn take(&self, place: FaultPlace, times: Times) -> bool {
        let mut notes = self.notes();
        let served = notes.served.entry(place).or_default();
        let left = match times {
            Times::Always => true,
            Times::Count(count) => *served < count,
        };
        *served += u32::from(left);
        left
    }

    /// Waits until the hold of this name is released; false when the server stops first.
    pub(super) async fn hold(&self, name: &str, request: &Request, place: Place) -> bool {
        let Place { stage, turn } = place;
        let held = Held { name: name.to_owned(), user: request.user_name().to_owned(), stage, turn };
        let _waiting = Waiting::enter(self, held);
        loop {
            // Listening begins before the look, so that a release between the two is not missed.
            let mut rung = std::pin::pin!(self.released.notified());
            rung.as_mut().enable();
            if self.notes().released.contains(name) {
                return true;
            }
            tokio::select! {
                () = rung => {}
                () = self.stop.cancelled() => return false,
            }
        }
    }

    /// Opens the hold of this name for good and returns how many requests waited for it.
    pub(super) fn release(&self, name: String) -> usize {
        let mut notes = self.notes();
        let waiting = notes.held.values().filter(|held| held.name == name).count();
        notes.released.insert(name);
        drop(notes);
        self.released.notify_waiters();
        waiting
    }

    pub(super) fn held(&self) -> Vec<Held> {
        self.notes().held.values().cloned().collect()
    }

    pub(super) fn violations(&self) -> Violations {
        self.notes().violations.clone()
    }

    pub(super) fn requests(&self) -> Requests {
        self.notes().requests.clone()
    }
}

impl Notes {
    /// The main loop's place is the number of answers in its request. The other stages ask anew each time, so
    /// theirs is the number of different requests before it: one that is repeated is where it was.
    fn place(&mut self, request: &Request) -> Place {
        let stage = stage::detect(request);
        if stage == Stage::Plan {
            return Place { stage, turn: request.turn() };
        }
        let messages = Digest::of_value(&request.items.iter().map(|item| item.raw.clone()).collect::<Value>());
        let asked = self.asked.entry((request.user_name().to_owned(), stage)).or_default();
        let turn = asked.iter().position(|earlier| *earlier == messages).unwrap_or_else(|| {
            asked.push(messages);
            asked.len() - 1
        });
        Place { stage, turn }
    }

    fn refuse(&mut self, user: &str, Place { stage, turn }: Place, broken: Vec<Broken>) -> ApiError {
        let sentences: Vec<String> = broken.iter().map(|(_, message)| message.clone()).collect();
        for (rule, message) in broken {
            tracing::warn!(user, ?stage, turn, ?rule, message, "violation");
            self.violations.total += 1;
            if self.violations.violations.len() < KEPT_VIOLATIONS {
                self.violations.violations.push(Violation { user: user.to_owned(), stage, turn, rule, message });
            }
        }
        ApiError::bad_request(sentences.join("; "))
    }
}

/// A request that waits; it is off the list as soon as its client is gone.
struct Waiting<'a> {
    state: &'a ServerState,
    number: u64,
}

impl<'a> Waiting<'a> {
    fn enter(state: &'a ServerState, held: Held) -> Self {
        let mut notes = state.notes();
        let number = notes.next_held;
        notes.next_held += 1;
        notes.held.insert(number, held);
        Self { state, number }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.state.notes().held.remove(&self.number);
    }
}
