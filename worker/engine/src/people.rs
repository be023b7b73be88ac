//! What people are asked while a conversation runs, and what they say. Who brings it to them is the shell's.

use crate::conversation::{Call, CallState, Conversation, OpenQuestion};
use crate::event::{About, Arguments, CallId, Decision, Event, QuestionId, RulingReason, UserQuestion};
use bloomery_crds::Digest;
use bloomery_crds::text::bounded;

/// The longest question, in bytes.
pub const MAX_QUESTION: usize = 4096;

/// The longest answer or message of a person that is taken whole, in bytes.
pub const MAX_WORDS: usize = 16 * 1024;

/// The longest reason of a decision, in bytes.
const MAX_REASON: usize = 1024;

/// The longest name of a person or an approver, in bytes.
const MAX_NAME: usize = 256;

/// Something that waits until a person has decided or answered.
#[derive(Debug, Clone, PartialEq)]
pub enum Ask<'a> {
    /// Whether a call may be made.
    Call(HeldAsk<'a>),
    /// A question.
    Question(&'a OpenQuestion),
}

/// A held call, with all that a person has to know of it.
#[derive(Debug, Clone, PartialEq)]
pub struct HeldAsk<'a> {
    /// Which call.
    pub call: &'a CallId,
    /// The tool, as the Skill names it.
    pub tool: &'a str,
    /// The exact arguments, as they are sent: canonical JSON.
    pub arguments: &'a str,
    /// Their digest, which an approval names.
    pub digest: &'a Digest,
    /// Every reason that holds it, and is not lifted yet.
    pub reasons: &'a [RulingReason],
    /// Who still has to approve: all of them.
    pub approvers: Vec<&'a str>,
    /// What is to be reached.
    pub goal: &'a str,
    /// What the model said when it asked for the call.
    pub said: &'a str,
}

impl HeldAsk<'_> {
    /// The approval of exactly this call.
    pub fn approve(&self, decision: Decision) -> Said {
        Said::Approves { call: self.call.clone(), digest: self.digest.clone(), decision }
    }

    /// The denial of this call.
    pub fn deny(&self, decision: Decision) -> Said {
        Said::Denies { call: self.call.clone(), decision }
    }
}

/// What a person says. What it changes is for the conversation to tell: a decision about another call, other arguments
/// or for nobody who has to approve changes nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// A held call may be made.
    Approves {
        /// Which call.
        call: CallId,
        /// Digest of the arguments that the person saw.
        digest: Digest,
        /// Whose decision it is.
        decision: Decision,
    },
    /// A held call is not to be made.
    Denies {
        /// Which call.
        call: CallId,
        /// Whose decision it is.
        decision: Decision,
    },
    /// The answer to a question.
    Replies {
        /// Which question.
        question: QuestionId,
        /// The answer.
        text: String,
        /// Who the person is.
        by: String,
        /// Its place among the replies of the Job's spec, from 1; none where it did not come from there.
        nth: Option<u32>,
    },
    /// Something that nobody asked for.
    Message {
        /// What the person says.
        text: String,
        /// Who the person is.
        by: String,
        /// Its place among the replies of the Job's spec, from 1; none where it did not come from there.
        nth: Option<u32>,
    },
}

impl From<Said> for Event {
    /// The event of it, with texts that fit into a log and a prompt.
    fn from(said: Said) -> Self {
        let name = |text: String| bounded(&text, MAX_NAME);
        let words = |text: String| bounded(&text, MAX_WORDS);
        let fitted = |decision: Decision| Decision {
            approver: name(decision.approver),
            by: name(decision.by),
            reason: decision.reason.map(|reason| bounded(&reason, MAX_REASON)),
        };
        match said {
            Said::Approves { call, digest, decision } => {
                Self::ToolApproved { call, digest, decision: fitted(decision) }
            }
            Said::Denies { call, decision } => Self::ToolDenied { call, decision: fitted(decision) },
            Said::Replies { question, text, by, nth } => {
                Self::UserReplied { question: QuestionId(name(question.0)), text: words(text), by: name(by), nth }
            }
            Said::Message { text, by, nth } => Self::UserMessage { text: words(text), by: name(by), nth },
        }
    }
}

/// Everything that waits for a person, held calls first.
pub(crate) fn asks(conversation: &Conversation) -> Vec<Ask<'_>> {
    let held = conversation.calls().iter().filter_map(|call| held(call, conversation)).map(Ask::Call);
    held.chain(conversation.questions().open().iter().map(Ask::Question)).collect()
}

/// The event that asks about each of these, in order: their ids go on from the questions before.
pub(crate) fn questions(conversation: &Conversation, about: Vec<(About, String, Vec<String>)>) -> Vec<Event> {
    let asked = |(n, (about, text, choices)): (u32, (About, String, Vec<String>))| Event::UserAsked {
        question: UserQuestion { id: QuestionId::new(n), text: bounded(&text, MAX_QUESTION), choices },
        about,
    };
    (conversation.questions().asked() + 1..).zip(about).map(asked).collect()
}

fn held<'a>(call: &'a Call, conversation: &'a Conversation) -> Option<HeldAsk<'a>> {
    let Some(Arguments::Canonical(arguments)) = &call.arguments else { return None };
    let tool = conversation.tool(&call.tool)?;
    (call.state == CallState::Held).then(|| HeldAsk {
        call: &call.id,
        tool: &tool.name,
        arguments: arguments.text(),
        digest: arguments.digest(),
        reasons: call.hold.reasons(),
        approvers: call.hold.approvers(),
        goal: &conversation.run().goal,
        said: conversation.said(),
    })
}
