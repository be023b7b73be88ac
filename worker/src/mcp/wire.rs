//! What has become of each request on the wire: the proof behind `failed` and `indeterminate`, and what its server told
//! of it meanwhile.
//!
//! rmcp reports a request that was never sent, one that was lost and one whose stream ended by errors that look
//! alike. So the HTTP client notes here what it does with each request, and whoever gave a request up can forbid
//! that it is sent later.

use super::news::News;
use crate::progress::{Onlooker, Progress};
use bloomery_engine::event::ToolProgress;
use rmcp::model::{ClientJsonRpcMessage, GetMeta, JsonRpcMessage, ProgressToken, RequestId};
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// How much a server may tell of one call before somebody takes it; of more than that, the last is kept.
pub(super) const MAX_TOLD: usize = 32;

/// How many requests of a server are remembered.
const MAX_ASKED: usize = 64;

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

/// What a request is known by, its number and the token of its progress; of another message, nothing.
pub(super) fn of_request(message: &ClientJsonRpcMessage) -> (Option<RequestId>, Option<ProgressToken>) {
    match message {
        JsonRpcMessage::Request(asked) => (Some(asked.id.clone()), asked.request.get_meta().get_progress_token()),
        _ => (None, None),
    }
}

#[derive(Debug)]
enum Note {
    GivenUp,
    Known(Known),
}

/// What is known of a request that is under way.
#[derive(Debug)]
struct Known {
    fate: Fate,
    token: Option<ProgressToken>,
    told: Vec<ToolProgress>,
    is_cancelled: bool,
    /// The number of the last event on the stream of its answer.
    last_event: Option<String>,
}

/// The notes on one session's requests.
#[derive(Debug, Clone, Default)]
pub(super) struct Wire(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    notes: Mutex<Notes>,
    heard: Notify,
    onlooker: Onlooker,
}

#[derive(Debug, Default)]
struct Notes {
    requests: HashMap<RequestId, Note>,
    last_trouble: Option<String>,
    /// What the server has asked of us: it numbers its requests as it likes, as we do.
    asked: HashSet<RequestId>,
    tools_changed: bool,
    keeps_state: bool,
    is_final: bool,
}

impl Wire {
    /// Notes of a session that somebody looks on at.
    pub(super) fn seen_by(onlooker: &Onlooker) -> Self {
        Self(Arc::new(Shared { onlooker: onlooker.clone(), ..Shared::default() }))
    }

    /// Notes that a request is about to be sent; false where it was given up before, and must not be.
    pub(super) fn begin(&self, id: &RequestId, token: Option<ProgressToken>) -> bool {
        self.with(|notes| {
            if matches!(notes.requests.get(id), Some(Note::GivenUp)) {
                return false;
            }
            let known = Known { fate: Fate::Sent, token, told: Vec::new(), is_cancelled: false, last_event: None };
            notes.requests.insert(id.clone(), Note::Known(known));
            true
        })
    }

    /// Notes what broke. A request that nobody asks for any more is not noted again.
    pub(super) fn note(&self, id: &RequestId, fate: Fate) {
        self.with(|notes| {
            if let Fate::Unsent(why) | Fate::Broken(why) = &fate {
                notes.last_trouble = Some(why.clone());
            }
            if let Some(known) = notes.known(id) {
                known.fate = fate;
            }
        });
    }

    /// Notes that the server keeps something of the session, which would end with it.
    pub(super) fn note_state(&self) {
        self.with(|notes| notes.keeps_state = true);
    }

    /// Whether the server keeps something of the session.
    pub(super) fn keeps_state(&self) -> bool {
        self.with(|notes| notes.keeps_state)
    }

    /// Notes that the server would answer the same at another time.
    pub(super) fn note_final(&self) {
        self.with(|notes| notes.is_final = true);
    }

    /// Whether it would.
    pub(super) fn is_final(&self) -> bool {
        self.with(|notes| notes.is_final)
    }

    /// Notes what came on the stream of a request's answer, or on one of which that is not known.
    pub(super) fn hear(&self, on: Option<&RequestId>, news: News) {
        if let News::Progress(_, told) | News::Logged(told) = &news {
            self.0.onlooker.sees(|| Progress::ToolProgress(told.clone()));
        }
        self.with(|notes| notes.hear(on, news));
        self.0.heard.notify_waiters();
    }

    /// Notes how far the stream of a request's answer was read.
    pub(super) fn read_to(&self, id: &RequestId, event: &str) {
        self.with(|notes| {
            if let Some(known) = notes.known(id) {
                known.last_event = Some(event.to_owned());
            }
        });
    }

    /// The request whose answer's stream was read up to this event.
    pub(super) fn of_event(&self, event: &str) -> Option<RequestId> {
        let is_it = |note: &Note| matches!(note, Note::Known(known) if known.last_event.as_deref() == Some(event));
        self.with(|notes| notes.requests.iter().find(|(_, note)| is_it(note)).map(|(id, _)| id.clone()))
    }

    /// Waits until the server gives a request up.
    pub(super) async fn cancelled(&self, id: &RequestId) {
        loop {
            let heard = self.0.heard.notified();
            if self.with(|notes| notes.known(id).is_some_and(|known| known.is_cancelled)) {
                return;
            }
            heard.await;
        }
    }

    /// Waits until the server tells something of a request, and takes it.
    pub(super) async fn told(&self, id: &RequestId) -> Vec<ToolProgress> {
        loop {
            let heard = self.0.heard.notified();
            let told = self.with(|notes| notes.known(id).map(|known| std::mem::take(&mut known.told)));
            if let Some(told) = told.filter(|told| !told.is_empty()) {
                return told;
            }
            heard.await;
        }
    }

    /// Gives a request up, and tells what became of it, and what its server told of it at last: one that has not begun by
    /// now is never sent.
    pub(super) fn give_up(&self, id: &RequestId) -> (Fate, Vec<ToolProgress>) {
        self.with(|notes| match notes.requests.remove(id) {
            Some(Note::Known(known)) => (known.fate, known.told),
            Some(Note::GivenUp) | None => {
                notes.requests.insert(id.clone(), Note::GivenUp);
                (Fate::Unsent("it was given up before it could be sent".to_owned()), Vec::new())
            }
        })
    }

    /// Notes that nothing will be answered any more, and why.
    pub(super) fn break_all(&self, why: &str) {
        self.with(|notes| {
            notes.last_trouble = Some(why.to_owned());
            for note in notes.requests.values_mut() {
                if let Note::Known(known @ Known { fate: Fate::Sent, .. }) = note {
                    known.fate = Fate::Broken(why.to_owned());
                }
            }
        });
    }

    /// Whether the server has said that its tools are others, since this was asked last.
    pub(super) fn take_tools_changed(&self) -> bool {
        self.with(|notes| std::mem::take(&mut notes.tools_changed))
    }

    /// Whether the server has said so, and nobody has looked.
    pub(super) fn tools_changed(&self) -> bool {
        self.with(|notes| notes.tools_changed)
    }

    /// The last thing that broke, whichever request it was.
    pub(super) fn last_trouble(&self) -> Option<String> {
        self.with(|notes| notes.last_trouble.clone())
    }

    fn with<T>(&self, act: impl FnOnce(&mut Notes) -> T) -> T {
        act(&mut self.0.notes.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Notes {
    fn known(&mut self, id: &RequestId) -> Option<&mut Known> {
        match self.requests.get_mut(id) {
            Some(Note::Known(known)) => Some(known),
            Some(Note::GivenUp) | None => None,
        }
    }

    /// The request that is under way, where there is no other.
    fn only(&self) -> Option<RequestId> {
        let mut under_way = self.requests.iter().filter(|(_, note)| matches!(note, Note::Known(_))).map(|(id, _)| id);
        let first = under_way.next()?;
        under_way.next().is_none().then(|| first.clone())
    }

    fn hear(&mut self, on: Option<&RequestId>, news: News) {
        match news {
            News::Progress(token, told) => {
                // Of any request that is under way: only one of them has this token.
                let of_token = self.requests.values_mut().find_map(|note| match note {
                    Note::Known(known) if known.token.as_ref() == Some(&token) => Some(known),
                    _ => None,
                });
                if let Some(known) = of_token {
                    known.tell(told);
                }
            }
            News::Logged(told) => {
                // A pipe has one stream for all answers: there, a line belongs to the only request that is under way.
                let on = on.cloned().or_else(|| self.only());
                if let Some(known) = on.and_then(|id| self.known(&id)) {
                    known.tell(told);
                }
            }
            News::Asked(id) => {
                if self.asked.len() < MAX_ASKED {
                    self.asked.insert(id);
                }
            }
            News::ToolsChanged => self.tools_changed = true,
            News::Cancelled(id, reason) => {
                if self.asked.remove(&id) {
                    return;
                }
                if let Some(known) = self.known(&id) {
                    let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
                    known.fate = Fate::Broken(format!("it gave the call up{reason}"));
                    known.is_cancelled = true;
                }
            }
        }
    }
}

impl Known {
    fn tell(&mut self, told: ToolProgress) {
        if self.told.len() == MAX_TOLD {
            self.told.pop();
        }
        self.told.push(told);
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

    fn told(progress: f64) -> ToolProgress {
        ToolProgress { progress: Some(progress), ..ToolProgress::default() }
    }

    #[test]
    fn a_request_that_began_may_have_been_sent() {
        let wire = Wire::default();
        assert!(wire.begin(&id(1), None));
        assert_eq!(wire.give_up(&id(1)).0, Fate::Sent);
    }

    #[test]
    fn what_broke_is_told() {
        let wire = Wire::default();
        assert!(wire.begin(&id(1), None) && wire.begin(&id(2), None));
        wire.note(&id(1), Fate::Unsent("refused".into()));
        wire.note(&id(2), Fate::Broken("reset".into()));
        assert_eq!(wire.give_up(&id(1)).0, Fate::Unsent("refused".into()));
        assert_eq!(wire.give_up(&id(2)).0, Fate::Broken("reset".into()));
        assert_eq!(wire.last_trouble().as_deref(), Some("reset"));
    }

    #[test]
    fn where_all_breaks_what_was_not_sent_stays_so() {
        let wire = Wire::default();
        assert!(wire.begin(&id(1), None) && wire.begin(&id(2), None));
        wire.note(&id(1), Fate::Unsent("full".into()));
        wire.break_all("it ended");
        assert_eq!(wire.give_up(&id(1)).0, Fate::Unsent("full".into()));
        assert_eq!(wire.give_up(&id(2)).0, Fate::Broken("it ended".into()));
        assert_eq!(wire.last_trouble().as_deref(), Some("it ended"));
    }

    #[test]
    fn a_request_that_was_given_up_is_never_sent() {
        let wire = Wire::default();
        assert!(matches!(wire.give_up(&id(1)).0, Fate::Unsent(_)));
        assert!(!wire.begin(&id(1), None));
        assert!(wire.begin(&id(2), None));
    }

    #[test]
    fn progress_belongs_to_the_call_with_its_token_and_a_log_to_the_call_on_whose_answer_it_came() {
        let wire = Wire::default();
        assert!(wire.begin(&id(1), Some(token(11))) && wire.begin(&id(2), Some(token(12))));
        wire.hear(Some(&id(2)), News::Progress(token(11), told(1.0)));
        wire.hear(Some(&id(2)), News::Progress(token(99), told(2.0)));
        wire.hear(Some(&id(2)), News::Logged(told(3.0)));
        wire.hear(None, News::Logged(told(4.0)));
        assert_eq!(wire.give_up(&id(1)).1, [told(1.0)]);
        assert_eq!(wire.give_up(&id(2)).1, [told(3.0)]);
    }

    #[test]
    fn of_too_much_the_last_is_kept() {
        let wire = Wire::default();
        assert!(wire.begin(&id(1), Some(token(1))));
        for n in 0..100 {
            wire.hear(None, News::Progress(token(1), told(f64::from(n))));
        }
        let (_, kept) = wire.give_up(&id(1));
        assert_eq!(kept.len(), MAX_TOLD);
        assert_eq!((kept[0].clone(), kept[MAX_TOLD - 1].clone()), (told(0.0), told(99.0)));
    }

    #[tokio::test]
    async fn what_is_told_is_taken_when_it_comes_and_once() {
        let wire = Wire::default();
        assert!(wire.begin(&id(1), Some(token(1))));
        let hears = wire.clone();
        let (taken, ()) = tokio::join!(async move { hears.told(&id(1)).await }, async {
            wire.hear(None, News::Progress(token(1), told(1.0)));
        });
        assert_eq!(taken, [told(1.0)]);
        wire.hear(None, News::Progress(token(1), told(2.0)));
        assert_eq!(wire.give_up(&id(1)).1, [told(2.0)]);
    }

    #[tokio::test]
    async fn a_server_gives_our_request_up_and_its_own_is_another() {
        let wire = Wire::default();
        assert!(wire.begin(&id(1), None));
        wire.hear(Some(&id(1)), News::Asked(id(1)));
        wire.hear(Some(&id(1)), News::Cancelled(id(1), None));
        assert!(!wire.with(|notes| notes.known(&id(1)).unwrap().is_cancelled));
        let (waits, ours) = (wire.clone(), id(1));
        tokio::join!(async move { waits.cancelled(&ours).await }, async {
            wire.hear(None, News::Cancelled(id(1), Some("shutdown".into())));
        });
        assert_eq!(wire.give_up(&id(1)).0, Fate::Broken("it gave the call up: shutdown".into()));
    }
}
