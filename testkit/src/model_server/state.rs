//! The state that all requests share: the records for tests, and the progress of each conversation.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bloomery_crds::Digest;
use bloomery_crds::v1alpha1::Stage;
use serde_json::Value;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::answer::Answer;
use super::cache::{Cache, Cached};
use super::check::{self, EarlierRequest};
use super::error::ApiError;
use super::place::Place;
use super::records::{Held, Requests};
use super::request::{ANONYMOUS, Protocol, Request};
use super::script::Times;
use super::violation::{BrokenRule, Rule, Violation, Violations};
use super::{stage, wire};

/// The limit on recorded violations. Later ones are only counted.
const MAX_RECORDED_VIOLATIONS: usize = 1_000;

/// The state of the server. Clones share it.
#[derive(Clone)]
pub(super) struct ServerState {
    records: Arc<Mutex<Records>>,
    /// Wakes the requests that wait, whenever a hold of the script is released.
    released: Arc<Notify>,
    pub(super) stop: CancellationToken,
}

#[derive(Default)]
struct Records {
    violations: Violations,
    requests: Requests,
    /// The last request of each conversation.
    earlier: BTreeMap<HistoryKey, EarlierRequest>,
    /// The digests of the different requests of each user, goal and stage, except the main loop.
    stage_requests: BTreeMap<(String, Option<String>, Stage), Vec<Digest>>,
    /// The name of the script's conversation, by user.
    conversations: BTreeMap<String, String>,
    /// The goal of the latest request of the main loop, by user. A Job that validates its Skill has several, one after another.
    goals: BTreeMap<String, String>,
    /// The number of times that each fault was served.
    served: BTreeMap<FaultPlace, u32>,
    cache: Cache,
    /// The names of the holds that were released.
    released: BTreeSet<String>,
    /// The requests that wait at a hold, by their numbers.
    held: BTreeMap<u64, Held>,
    next_held: u64,
}

/// The place of a fault. The server counts for each user and conversation how often it has served the fault.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FaultPlace {
    pub(super) user: String,
    pub(super) conversation: String,
    pub(super) place: Place,
    /// The index among the faults of the turn.
    pub(super) index: usize,
}

impl ServerState {
    pub(super) fn new(stop: CancellationToken) -> Self {
        Self { records: Arc::default(), released: Arc::default(), stop }
    }

    fn records(&self) -> MutexGuard<'_, Records> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a request and checks it against the rules and the previous request. Returns the request's stage and turn.
    ///
    /// # Errors
    /// The request breaks rules. The error names all of them, and later requests are not compared with this request.
    pub(super) fn receive(&self, request: &Request) -> Result<Place, ApiError> {
        let mut records = self.records();
        let place = records.place(request);
        records.requests.by_user(request.user_name()).count(place);
        records.requests.total += 1;
        // Only the main loop has a history that grows. Requests of other stages do not build on each other.
        let history = history_of(request);
        let earlier = records.earlier.get(&history).filter(|_| place.stage == Stage::Plan);
        let broken = check::check(request, earlier);
        if !broken.is_empty() {
            return Err(records.refuse(request.user_name(), place, broken));
        }
        if place.stage == Stage::Plan && request.user.is_some() {
            records.earlier.insert(history, EarlierRequest::new(request));
        }
        Ok(place)
    }

    /// Returns the name of the user's conversation in the script, if an earlier request has selected one.
    pub(super) fn conversation_of(&self, request: &Request) -> Option<String> {
        self.records().conversations.get(request.user.as_ref()?).cloned()
    }

    /// Records the name of the user's conversation in the script.
    pub(super) fn set_conversation(&self, request: &Request, conversation: &str) {
        if let Some(user) = &request.user {
            self.records().conversations.insert(user.clone(), conversation.to_owned());
        }
    }

    /// Records a body that is not a valid request.
    pub(super) fn refuse_unreadable(&self, error: &serde_json::Error) -> ApiError {
        let mut records = self.records();
        records.requests.total += 1;
        records.refuse(ANONYMOUS, Place::default(), vec![(Rule::Readable, error.to_string())])
    }

    /// Records a request that is refused.
    pub(super) fn refuse(&self, request: &Request, place: Place, broken: BrokenRule) -> ApiError {
        self.records().refuse(request.user_name(), place, vec![broken])
    }

    /// Counts the tokens of a prompt that are in the cache. Then adds the prefixes that the prompt marks to the cache.
    pub(super) fn count_cached(&self, request: &Request) -> Cached {
        self.records().cache.count(&request.model, &wire::parts(request))
    }

    /// Records that a request receives its scripted answer, and the thoughts that the next request must return.
    pub(super) fn record_answer(&self, request: &Request, place: Place, answer: &Answer) {
        if place.stage != Stage::Plan {
            return;
        }
        let mut records = self.records();
        records.requests.by_user(request.user_name()).answered += 1;
        if let Some(earlier) = records.earlier.get_mut(&history_of(request)) {
            earlier.thoughts = wire::thoughts(request, answer);
        }
    }

    /// Returns the number of requests so far.
    pub(super) fn request_count(&self) -> u64 {
        self.records().requests.total
    }

    /// Returns whether to serve a fault once more, and if so, counts that it is served.
    pub(super) fn take_serving(&self, place: FaultPlace, times: Times) -> bool {
        let mut records = self.records();
        let served = records.served.entry(place).or_default();
        let is_left = match times {
            Times::Always => true,
            Times::Count(count) => *served < count,
        };
        *served += u32::from(is_left);
        is_left
    }

    /// Waits until the hold of this name is released. Returns `false` if the server stops first.
    pub(super) async fn wait_for_release(&self, name: &str, request: &Request, place: Place) -> bool {
        let Place { stage, turn } = place;
        let held = Held { name: name.to_owned(), user: request.user_name().to_owned(), stage, turn };
        let _waiting = Waiting::enter(self, held);
        loop {
            // Registers for the notification before the check, so that a release in between is not missed.
            let mut released = std::pin::pin!(self.released.notified());
            released.as_mut().enable();
            if self.records().released.contains(name) {
                return true;
            }
            tokio::select! {
                () = released => {}
                () = self.stop.cancelled() => return false,
            }
        }
    }

    /// Releases the hold of this name for good. Returns the number of requests that waited for it.
    pub(super) fn release(&self, name: String) -> usize {
        let mut records = self.records();
        let waiting = records.held.values().filter(|held| held.name == name).count();
        records.released.insert(name);
        drop(records);
        self.released.notify_waiters();
        waiting
    }

    pub(super) fn held(&self) -> Vec<Held> {
        self.records().held.values().cloned().collect()
    }

    pub(super) fn violations(&self) -> Violations {
        self.records().violations.clone()
    }

    pub(super) fn requests(&self) -> Requests {
        self.records().requests.clone()
    }
}

/// Identifies a conversation: its user, the protocol, because each has its own form, and the goal, because a Job that validates its Skill
/// has several conversations.
type HistoryKey = (String, Protocol, String);

fn history_of(request: &Request) -> HistoryKey {
    (request.user_name().to_owned(), request.protocol, request.first_text().to_owned())
}

impl Records {
    /// Returns the stage and the turn of a request. In the main loop, the turn is the number of answers in the request.
    /// In other stages, the turn is the number of different requests before, so a repeated request has the same turn.
    fn place(&mut self, request: &Request) -> Place {
        let stage = stage::detect(request);
        let user = request.user_name().to_owned();
        if stage == Stage::Plan {
            self.goals.insert(user, request.first_text().to_owned());
            return Place { stage, turn: request.turn() };
        }
        let messages = Digest::of_value(&request.items.iter().map(|item| item.raw.clone()).collect::<Value>());
        let goal = self.goals.get(&user).cloned();
        let requests = self.stage_requests.entry((user, goal, stage)).or_default();
        let turn = requests.iter().position(|earlier| *earlier == messages).unwrap_or_else(|| {
            requests.push(messages);
            requests.len() - 1
        });
        Place { stage, turn }
    }

    fn refuse(&mut self, user: &str, Place { stage, turn }: Place, broken: Vec<BrokenRule>) -> ApiError {
        let sentences: Vec<String> = broken.iter().map(|(_, message)| message.clone()).collect();
        for (rule, message) in broken {
            tracing::warn!(user, ?stage, turn, ?rule, message, "violation");
            self.violations.total += 1;
            if self.violations.violations.len() < MAX_RECORDED_VIOLATIONS {
                self.violations.violations.push(Violation { user: user.to_owned(), stage, turn, rule, message });
            }
        }
        ApiError::bad_request(sentences.join("; "))
    }
}

/// A request that waits at a hold. Dropping it removes the request from the list, so the request of a client that
/// disconnects is removed, too.
struct Waiting<'a> {
    state: &'a ServerState,
    number: u64,
}

impl<'a> Waiting<'a> {
    fn enter(state: &'a ServerState, held: Held) -> Self {
        let mut records = state.records();
        let number = records.next_held;
        records.next_held += 1;
        records.held.insert(number, held);
        Self { state, number }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.state.records().held.remove(&self.number);
    }
}
