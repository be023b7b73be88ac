//! The statements of people in a cluster, and lowered limits of the Job. Earlier ones come in the Job's part of the run document, because a Job that waits for people
//! has no pod. Later ones come in the operator's answers to reports.

use super::environment::People;
use bloomery_crds::run::{GivenDecision, GivenReply};
use bloomery_crds::v1alpha1::{Limits, ToolPolicy};
use bloomery_engine::decisions;
use bloomery_engine::event::{CallId, Decision, QuestionId};
use bloomery_engine::people::{HumanRequest, Statement};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The recorded author of a reply in a Job's spec. The API server does not record who wrote a field.
const UNKNOWN_PERSON: &str = "a person";

/// Collects decisions and replies, and returns each of them once. It cannot ask people.
#[derive(Debug, Default)]
pub struct DecisionInbox(Mutex<Inbox>);

#[derive(Debug, Default)]
struct Inbox {
    pending: Vec<Statement>,
    /// The number of the last reply. Replies in a Job's spec are only appended.
    last_reply: u32,
    /// The limits in the latest response to a report.
    limits: Option<Limits>,
    /// The blocked tools in the latest response to a report.
    blocked_tools: Vec<String>,
    /// The tool policy of the tenant in the latest response to a report.
    tenant_tools: Option<ToolPolicy>,
}

impl DecisionInbox {
    /// Creates the inbox with the decisions and replies of the Job's part.
    pub fn new(decisions: &[GivenDecision], replies: &[GivenReply]) -> Self {
        let pending = decisions.iter().map(statement_of_decision).collect();
        let inbox = Self(Mutex::new(Inbox { pending, ..Inbox::default() }));
        inbox.add_replies(replies.to_vec());
        inbox
    }

    /// Adds new replies. Replies that were added before are ignored.
    pub fn add_replies(&self, mut replies: Vec<GivenReply>) {
        replies.sort_by_key(|reply| reply.nth);
        let mut inbox = self.inbox();
        for reply in replies {
            if reply.nth > inbox.last_reply {
                tracing::info!("reply {} of the Job was received, and is recorded after the current step", reply.nth);
                inbox.last_reply = reply.nth;
                inbox.pending.push(statement_of_reply(reply));
            }
        }
    }

    /// Adds the current limits of the Job's spec. The conversation decides whether they lower its own. Limits that were added before
    /// are ignored.
    pub fn add_limits(&self, limits: Limits) {
        let mut inbox = self.inbox();
        if inbox.limits.as_ref() != Some(&limits) {
            tracing::info!("the limits of the Job were received, and are compared after the current step");
            inbox.limits = Some(limits.clone());
            inbox.pending.push(Statement::LowerLimits { limits });
        }
    }

    /// Adds the tools that the Skill blocks now. The conversation decides whether they are new. Tools that were added before are ignored.
    pub fn add_blocked_tools(&self, tools: Vec<String>) {
        let mut inbox = self.inbox();
        if inbox.blocked_tools != tools && !tools.is_empty() {
            inbox.blocked_tools.clone_from(&tools);
            inbox.pending.push(Statement::BlockTools { tools });
        }
    }

    /// Adds the current tool policy of the tenant. The conversation decides whether it is new. A policy that was added before is ignored.
    pub fn add_tenant_tools(&self, policy: ToolPolicy) {
        let mut inbox = self.inbox();
        if inbox.tenant_tools.as_ref() != Some(&policy) {
            inbox.tenant_tools = Some(policy.clone());
            inbox.pending.push(Statement::RestrictTools { policy });
        }
    }

    fn inbox(&self) -> MutexGuard<'_, Inbox> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl People for DecisionInbox {
    fn can_be_asked(&self) -> bool {
        false
    }

    fn take_statements(&self) -> Vec<Statement> {
        std::mem::take(&mut self.inbox().pending)
    }

    fn ask<'a>(&'a self, _: &'a [HumanRequest<'a>]) -> LocalBoxFuture<'a, Option<Statement>> {
        futures::future::ready(None).boxed_local()
    }
}

fn statement_of_decision(given: &GivenDecision) -> Statement {
    let GivenDecision { call, tool: _, digest, approver, verdict: _, by, reason } = given;
    let call = CallId(call.clone());
    if let Some(decision) = decisions::denial(given) {
        return Statement::Denial { call, decision };
    }
    let decision = Decision { approver: approver.clone(), by: by.clone(), reason: reason.clone() };
    Statement::Approval { call, digest: digest.clone(), decision }
}

fn statement_of_reply(given: GivenReply) -> Statement {
    let GivenReply { nth, question, text } = given;
    let (by, nth) = (UNKNOWN_PERSON.to_owned(), Some(nth));
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

    fn taken(inbox: &DecisionInbox) -> Vec<Option<u32>> {
        let nth = |said| match said {
            Statement::Reply { nth, .. } | Statement::Message { nth, .. } => nth,
            Statement::Approval { .. }
            | Statement::Denial { .. }
            | Statement::LowerLimits { .. }
            | Statement::BlockTools { .. }
            | Statement::RestrictTools { .. } => None,
        };
        inbox.take_statements().into_iter().map(nth).collect()
    }

    #[test]
    fn a_reply_is_returned_once_and_in_order_even_if_it_is_added_again() {
        let inbox = DecisionInbox::new(&[], &[given(3, None), given(2, Some("q-1"))]);
        inbox.add_replies(vec![given(2, Some("q-1")), given(3, None), given(4, Some("q-2"))]);
        assert_eq!(taken(&inbox), [Some(2), Some(3), Some(4)]);
        inbox.add_replies(vec![given(2, Some("q-1")), given(4, Some("q-2"))]);
        assert_eq!(taken(&inbox), []);
        inbox.add_replies(vec![given(4, Some("q-2")), given(5, None)]);
        assert_eq!(taken(&inbox), [Some(5)]);
    }

    #[test]
    fn limits_and_blocked_tools_are_returned_again_only_if_they_changed() {
        let (inbox, steps) = (DecisionInbox::default(), |steps| Limits { steps: Some(steps), ..Limits::default() });
        for limits in [steps(9), steps(9), steps(7)] {
            inbox.add_limits(limits);
        }
        let lowered = [9, 7].map(|limit| Statement::LowerLimits { limits: steps(limit) });
        assert_eq!(inbox.take_statements(), lowered);
        inbox.add_limits(steps(7));
        assert_eq!(inbox.take_statements(), []);
        let tools = || vec!["send_*".to_owned()];
        for tools in [vec![], tools(), tools(), vec![]] {
            inbox.add_blocked_tools(tools);
        }
        assert_eq!(inbox.take_statements(), [Statement::BlockTools { tools: tools() }]);
        let policy = || ToolPolicy { allowed: None, blocked: tools() };
        for _ in 0..2 {
            inbox.add_tenant_tools(policy());
        }
        assert_eq!(inbox.take_statements(), [Statement::RestrictTools { policy: policy() }]);
    }

    #[test]
    fn a_reply_without_a_question_is_a_message_and_its_author_is_unknown() {
        let inbox = DecisionInbox::new(&[], &[given(1, Some("q-7")), given(2, None)]);
        let (by, text) = (|| "a person".to_owned(), |n: u32| format!("reply {n}"));
        assert_eq!(
            inbox.take_statements(),
            [
                Statement::Reply { question: QuestionId::new(7), text: text(1), by: by(), nth: Some(1) },
                Statement::Message { text: text(2), by: by(), nth: Some(2) },
            ]
        );
    }
}
