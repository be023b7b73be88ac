//! What has become of each request on the wire: the proof behind `failed` and `indeterminate`.
//!
//! rmcp reports a request that was never sent, one that was lost and one whose stream ended by errors that look
//! alike. So the HTTP client notes here what it does with each request, and whoever gave a request up can forbid
//! that it is sent later.

use rmcp::model::RequestId;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// What is known of a request that has no answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fate {
    /// No byte of it has left us, and none will.
    Unsent(String),
    /// It was sent, or may have been.
    Sent,
    /// It was sent, and then something broke.
    Broken(String),
}

#[derive(Debug)]
enum Note {
    GivenUp,
    Known(Fate),
}

/// The notes on one session's requests.
#[derive(Debug, Clone, Default)]
pub(super) struct Wire(Arc<Mutex<Notes>>);

#[derive(Debug, Default)]
struct Notes {
    requests: HashMap<RequestId, Note>,
    last_trouble: Option<String>,
}

impl Wire {
    /// Notes that a request is about to be sent; false where it was given up before, and must not be.
    pub(super) fn begin(&self, id: &RequestId) -> bool {
        self.with(|notes| {
            if matches!(notes.requests.get(id), Some(Note::GivenUp)) {
                return false;
            }
            notes.requests.insert(id.clone(), Note::Known(Fate::Sent));
            true
        })
    }

    /// Notes what broke. A request that nobody asks for any more is not noted again.
    pub(super) fn note(&self, id: &RequestId, fate: Fate) {
        self.with(|notes| {
            if let Fate::Unsent(why) | Fate::Broken(why) = &fate {
                notes.last_trouble = Some(why.clone());
            }
            if let Some(note @ Note::Known(_)) = notes.requests.get_mut(id) {
                *note = Note::Known(fate);
            }
        });
    }

    /// Gives a request up, and tells what became of it: one that has not begun by now is never sent.
    pub(super) fn give_up(&self, id: &RequestId) -> Fate {
        self.with(|notes| match notes.requests.remove(id) {
            Some(Note::Known(fate)) => fate,
            Some(Note::GivenUp) | None => {
                notes.requests.insert(id.clone(), Note::GivenUp);
                Fate::Unsent("it was given up before it could be sent".to_owned())
            }
        })
    }

    /// Notes that nothing will be answered any more, and why.
    pub(super) fn break_all(&self, why: &str) {
        self.with(|notes| {
            notes.last_trouble = Some(why.to_owned());
            for note in notes.requests.values_mut().filter(|note| matches!(note, Note::Known(Fate::Sent))) {
                *note = Note::Known(Fate::Broken(why.to_owned()));
            }
        });
    }

    /// The last thing that broke, whichever request it was.
    pub(super) fn last_trouble(&self) -> Option<String> {
        self.with(|notes| notes.last_trouble.clone())
    }

    fn with<T>(&self, act: impl FnOnce(&mut Notes) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(n: i64) -> RequestId {
        RequestId::Number(n)
    }

    #[test]
    fn a_request_that_began_may_have_been_sent() {
        let wire = Wire::default();
        assert!(wire.begin(&id(1)));
        assert_eq!(wire.give_up(&id(1)), Fate::Sent);
    }

    #[test]
    fn what_broke_is_told() {
        let wire = Wire::default();
        assert!(wire.begin(&id(1)) && wire.begin(&id(2)));
        wire.note(&id(1), Fate::Unsent("refused".into()));
        wire.note(&id(2), Fate::Broken("reset".into()));
        assert_eq!(wire.give_up(&id(1)), Fate::Unsent("refused".into()));
        assert_eq!(wire.give_up(&id(2)), Fate::Broken("reset".into()));
        assert_eq!(wire.last_trouble().as_deref(), Some("reset"));
    }

    #[test]
    fn where_all_breaks_what_was_not_sent_stays_so() {
        let wire = Wire::default();
        assert!(wire.begin(&id(1)) && wire.begin(&id(2)));
        wire.note(&id(1), Fate::Unsent("full".into()));
        wire.break_all("it ended");
        assert_eq!(wire.give_up(&id(1)), Fate::Unsent("full".into()));
        assert_eq!(wire.give_up(&id(2)), Fate::Broken("it ended".into()));
        assert_eq!(wire.last_trouble().as_deref(), Some("it ended"));
    }

    #[test]
    fn a_request_that_was_given_up_is_never_sent() {
        let wire = Wire::default();
        assert!(matches!(wire.give_up(&id(1)), Fate::Unsent(_)));
        assert!(!wire.begin(&id(1)));
        assert!(wire.begin(&id(2)));
    }
}
