//! The statements of people, and the events that record them.

use crate::event::{CallId, Decision, Event, QuestionId};
use bloomery_crds::Digest;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{Limits, ToolPolicy};

/// The longest answer or message of a person, in bytes. The rest is cut off.
pub const MAX_STATEMENT_BYTES: usize = 16 * 1024;

/// The longest reason of a decision, in bytes.
const MAX_REASON_BYTES: usize = 1024;

/// The longest name of a person or an approver, in bytes.
const MAX_NAME_BYTES: usize = 256;

/// A statement of a person. The conversation decides whether it changes anything.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    /// A held call may be made.
    Approval {
        /// The id of the call.
        call: CallId,
        /// The digest of the arguments that the person saw.
        digest: Digest,
        /// The decision.
        decision: Decision,
    },
    /// A held call must not be made.
    Denial {
        /// The id of the call.
        call: CallId,
        /// The decision.
        decision: Decision,
    },
    /// The answer to a question.
    Reply {
        /// The id of the question.
        question: QuestionId,
        /// The answer.
        text: String,
        /// The name of the person.
        by: String,
        /// The position among the replies of the Job's spec, from 1; none if it did not come from there.
        nth: Option<u32>,
    },
    /// The limits of the Job were lowered in its spec.
    LowerLimits {
        /// The limits of the spec. Only those that are lower than the current ones apply.
        limits: Limits,
    },
    /// The Skill blocks further tools, in a later revision than that of the Job.
    BlockTools {
        /// The names of tools, or prefixes of names with `*` at the end.
        tools: Vec<String>,
    },
    /// The tool policy of the tenant was changed.
    RestrictTools {
        /// The policy.
        policy: ToolPolicy,
    },
    /// A message that answers no question.
    Message {
        /// The message.
        text: String,
        /// The name of the person.
        by: String,
        /// The position among the replies of the Job's spec, from 1; none if it did not come from there.
        nth: Option<u32>,
    },
}

impl From<Statement> for Event {
    /// Returns the event of a statement. Texts are cut to their limits.
    fn from(statement: Statement) -> Self {
        let cut_name = |text: String| bounded(&text, MAX_NAME_BYTES);
        let cut_text = |text: String| bounded(&text, MAX_STATEMENT_BYTES);
        let cut_decision = |decision: Decision| Decision {
            approver: cut_name(decision.approver),
            by: cut_name(decision.by),
            reason: decision.reason.map(|reason| bounded(&reason, MAX_REASON_BYTES)),
        };
        match statement {
            Statement::Approval { call, digest, decision } => {
                Self::ToolApproved { call, digest, decision: cut_decision(decision) }
            }
            Statement::Denial { call, decision } => Self::ToolDenied { call, decision: cut_decision(decision) },
            Statement::Reply { question, text, by, nth } => Self::UserReplied {
                question: QuestionId(cut_name(question.0)),
                text: cut_text(text),
                by: cut_name(by),
                nth,
            },
            Statement::LowerLimits { limits } => Self::LimitsLowered { limits },
            Statement::BlockTools { tools } => Self::ToolsBlocked { tools },
            Statement::RestrictTools { policy } => Self::ToolsRestricted { policy },
            Statement::Message { text, by, nth } => Self::UserMessage { text: cut_text(text), by: cut_name(by), nth },
        }
    }
}
