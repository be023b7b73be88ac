//! What the server remembers: who asked what, what was broken, who is held.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::check::{self, Broken, Earlier, Rule, Violation};
use super::control::{Held, Requests, UserRequests, Violations};
use super::error::ApiError;
use super::request::Request;
use super::script::Times;

/// The most violations that are kept; later ones are only counted.
const KEPT_VIOLATIONS: usize = 1_000;

/// Who a request without a `user` belongs to. Such requests have no conversation to be held against.
const ANONYMOUS: &str = "anonymous";

/// The server's memory, shared by all requests.
#[derive(Clone)]
pub(super) struct Desk {
    notes: Arc<Mutex<Notes>>,
    /// Rung at every release.
    released: Arc<Notify>,
    pub(super) stop: CancellationToken,
}

#[derive(Default)]
struct Notes {
    violations: Violations,
    requests: Requests,
    earlier: BTreeMap<String, Earlier>,
    served: BTreeMap<FaultPlace, u32>,
    released: BTreeSet<String>,
    held: BTreeMap<u64, Held>,
    next_held: u64,
}

/// The place of one fault: it is counted for each conversation of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct FaultPlace {
    pub(super) user: String,
    pub(super) conversation: String,
    pub(super) turn: usize,
    pub(super) index: usize,
}

/// Whose request it is.
pub(super) fn user(request: &Request) -> &str {
    request.user.as_deref().unwrap_or(ANONYMOUS)
}

impl Desk {
    pub(super) fn new(stop: CancellationToken) -> Self {
        Self { notes: Arc::default(), released: Arc::default(), stop }
    }

    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request and holds it against the rules and the one before.
    ///
    /// # Errors
    /// It broke one: the error says all of them. Such a request is not what later ones are held
    /// against.
    pub(super) fn receive(&self, request: &Request) -> Result<(), ApiError> {
        let mut notes = self.notes();
        let turn = request.turn();
        notes.requests.of(user(request)).ask(turn);
        notes.requests.total += 1;
        let broken = check::check(request, notes.earlier.get(user(request)));
        if !broken.is_empty() {
            return Err(notes.refuse(user(request), turn, broken));
        }
        if let Some(user) = &request.user {
            notes.earlier.insert(user.clone(), Earlier::of(request));
        }
        Ok(())
    }

    /// Records a body that is no request.
    pub(super) fn refuse_unreadable(&self, why: String) -> ApiError {
        let mut notes = self.notes();
        notes.requests.total += 1;
        notes.refuse(ANONYMOUS, 0, vec![(Rule::Readable, why)])
    }

    /// Records a request that the script has no answer for.
    pub(super) fn refuse(&self, request: &Request, rule: Rule, why: String) -> ApiError {
        self.notes().refuse(user(request), request.turn(), vec![(rule, why)])
    }

    pub(super) fn answered(&self, request: &Request) {
        self.notes().requests.of(user(request)).answered += 1;
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
    pub(super) async fn hold(&self, name: &str, request: &Request) -> bool {
        let held = Held { name: name.to_owned(), user: user(request).to_owned(), turn: request.turn() };
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
    fn refuse(&mut self, user: &str, turn: usize, broken: Vec<Broken>) -> ApiError {
        let sentences: Vec<String> = broken.iter().map(|(_, message)| message.clone()).collect();
        for (rule, message) in broken {
            tracing::warn!(user, turn, ?rule, message, "violation");
            self.violations.total += 1;
            if self.violations.violations.len() < KEPT_VIOLATIONS {
                self.violations.violations.push(Violation { user: user.to_owned(), turn, rule, message });
            }
        }
        ApiError::bad_request(sentences.join("; "))
    }
}

impl Requests {
    fn of(&mut self, user: &str) -> &mut UserRequests {
        self.users.entry(user.to_owned()).or_default()
    }
}

impl UserRequests {
    fn ask(&mut self, turn: usize) {
        self.requests += 1;
        *self.by_position.entry(turn).or_default() += 1;
        self.positions = self.by_position.len();
    }
}

/// A request that waits; it is off the list as soon as its client is gone.
struct Waiting<'a> {
    desk: &'a Desk,
    number: u64,
}

impl<'a> Waiting<'a> {
    fn enter(desk: &'a Desk, held: Held) -> Self {
        let mut notes = desk.notes();
        let number = notes.next_held;
        notes.next_held += 1;
        notes.held.insert(number, held);
        Self { desk, number }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.desk.notes().held.remove(&self.number);
    }
}
