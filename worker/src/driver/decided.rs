//! People who are not where the worker is: a Job that waits for them has no pod. What they have decided and said comes
//! with the Job's part when it goes on, and from the operator while it runs.

use super::People;
use bloomery_crds::run::{GivenDecision, GivenReply};
use bloomery_crds::v1alpha1::ApprovalVerdict;
use bloomery_engine::event::{CallId, Decision, QuestionId};
use bloomery_engine::people::{HumanRequest, Statement};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Who said what stands in a Job's spec: the API server tells nobody who has written a field, so no name is made up.
const SOMEBODY: &str = "a person";

/// What people have decided and said, each heard once. Nobody is asked here.
#[derive(Debug, Default)]
pub struct Decided(Mutex<Inbox>);

#[derive(Debug, Default)]
struct Inbox {
    unheard: Vec<Statement>,
    /// The last reply that was put in: the Job's spec only adds to them.
    last: u32,
}

impl Decided {
    /// What the Job's part says of it.
    pub fn new(decisions: &[GivenDecision], replies: &[GivenReply]) -> Self {
        let decided = Self(Mutex::new(Inbox { unheard: decisions.iter().map(said).collect(), last: 0 }));
        decided.put(replies.to_vec());
        decided
    }

    /// Adds what people have said meanwhile. What was put in before is not taken again, heard or not.
    pub fn put(&self, mut replies: Vec<GivenReply>) {
        replies.sort_by_key(|reply| reply.nth);
        let mut inbox = self.inbox();
        for reply in replies {
            if reply.nth > inbox.last {
                tracing::info!("reply {} of the Job has come: it is taken once what is under way is done", reply.nth);
                inbox.last = reply.nth;
                inbox.unheard.push(replied(reply));
            }
        }
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl People for Decided {
    fn are_here(&self) -> bool {
        false
    }

    fn heard(&self) -> Vec<Statement> {
        std::mem::take(&mut self.inbox().unheard)
    }

    fn ask<'a>(&'a self, _: &'a [HumanRequest<'a>]) -> LocalBoxFuture<'a, Option<Statement>> {
        futures::future::ready(None).boxed_local()
    }
}

fn said(given: &GivenDecision) -> Statement {
    let GivenDecision { call, digest, approver, verdict, by, reason } = given;
    let call = CallId(call.clone());
    let decision = |by: &str| Decision { approver: approver.clone(), by: by.to_owned(), reason: reason.clone() };
    match verdict {
        ApprovalVerdict::Approve => Statement::Approval { call, digest: digest.clone(), decision: decision(by) },
        ApprovalVerdict::Deny => Statement::Denial { call, decision: decision(by) },
        ApprovalVerdict::Expired => Statement::Denial { call, decision: decision(Decision::NO_PERSON) },
    }
}

fn replied(given: GivenReply) -> Statement {
    let GivenReply { nth, question, text } = given;
    let (by, nth) = (SOMEBODY.to_owned(), Some(nth));
    match question {
        Some(question) => Statement::Reply { question: QuestionId(question), text, by, nth },
        None => Statement::Message { text, by, nth },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(nth: u32, question: Option<&str>) -> GivenReply {
        GivenReply { nth, question: question.map(str::to_owned), text: format!("reply {nth}") }
    }

    fn heard(decided: &Decided) -> Vec<Option<u32>> {
        let nth = |said| match said {
            Statement::Reply { nth, .. } | Statement::Message { nth, .. } => nth,
            Statement::Approval { .. } | Statement::Denial { .. } => None,
        };
        decided.heard().into_iter().map(nth).collect()
    }

    #[test]
    fn a_reply_is_heard_once_and_in_its_place_however_often_it_is_given() {
        let decided = Decided::new(&[], &[given(3, None), given(2, Some("q-1"))]);
        decided.put(vec![given(2, Some("q-1")), given(3, None), given(4, Some("q-2"))]);
        assert_eq!(heard(&decided), [Some(2), Some(3), Some(4)]);
        decided.put(vec![given(2, Some("q-1")), given(4, Some("q-2"))]);
        assert_eq!(heard(&decided), []);
        decided.put(vec![given(4, Some("q-2")), given(5, None)]);
        assert_eq!(heard(&decided), [Some(5)]);
    }

    #[test]
    fn a_reply_without_a_question_is_a_message_and_nobody_is_named() {
        let decided = Decided::new(&[], &[given(1, Some("q-7")), given(2, None)]);
        let (by, text) = (|| "a person".to_owned(), |n: u32| format!("reply {n}"));
        assert_eq!(
            decided.heard(),
            [
                Statement::Reply { question: QuestionId::new(7), text: text(1), by: by(), nth: Some(1) },
                Statement::Message { text: text(2), by: by(), nth: Some(2) },
            ]
        );
    }
}
