//! What others see of a conversation: `Job.status`, folded from the log and from nothing else.

use crate::conversation::{Conversation, OpenQuestion, StrayReply};
use crate::event::RulingReason;
use crate::people::{self, Ask};
use crate::step::{self, Step};
use bloomery_crds::outcome::Phase;
use bloomery_crds::report::{Hold, MAX_ENTITIES, MAX_REMARK, MAX_REMARKS, MAX_TOOL_NAME, MAX_TOOL_NAMES, Projection};
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{
    ApprovalSpec, AskedQuestion, DetectedIntent, Gates, HoldRule, LogPosition, ToolName, Usage, WaitingFor, seconds,
};

/// Projects a conversation whose log stands at `log`.
pub fn project(conversation: &Conversation, log: LogPosition) -> Projection {
    Projection {
        phase: phase(conversation),
        outcome: conversation.outcome().cloned(),
        result: conversation.result().map(crate::event::WholeResult::bounded),
        gates: Gates {
            intent: conversation.intention().intent().map(bounded_intent),
            pre_tool: conversation.pre_tool().clone(),
            finalization: conversation.finalization().projection(),
        },
        workflows: conversation.rules().workflows.projection(),
        tool_names: tool_names(conversation),
        waiting_for: waiting_for(conversation),
        replies_heard: conversation.questions().replies_heard(),
        stray_replies: stray_replies(conversation),
        remarks: remarks(conversation),
        usage: usage(conversation),
        log,
    }
}

/// What of the Skill does not hold, what changed under the Job first.
fn remarks(conversation: &Conversation) -> Vec<String> {
    let remarks = conversation.drift_remarks().chain(conversation.rules().remarks.iter().cloned());
    remarks.take(MAX_REMARKS).map(|remark| bounded(&remark, MAX_REMARK)).collect()
}

/// What the model sees under another name than its server's.
fn tool_names(conversation: &Conversation) -> Vec<ToolName> {
    let renamed = conversation.visible().iter().filter(|tool| tool.alias != tool.name);
    let shown = renamed.map(|tool| ToolName { tool: bounded(&tool.name, MAX_TOOL_NAME), alias: tool.alias.clone() });
    shown.take(MAX_TOOL_NAMES).collect()
}

fn phase(conversation: &Conversation) -> Phase {
    if let Some(outcome) = conversation.outcome() {
        return outcome.phase();
    }
    if let Some(waiting) = waiting_for(conversation) {
        return if waiting.call.is_some() { Phase::AwaitingApproval } else { Phase::AwaitingReply };
    }
    if conversation.parked().is_some() {
        return Phase::Queued;
    }
    if conversation.finalization().pending().is_some() || conversation.finalization().passed() {
        return Phase::Finalizing;
    }
    Phase::Running
}

fn waiting_for(conversation: &Conversation) -> Option<WaitingFor> {
    let call = conversation.held().filter(|_| conversation.outcome().is_none()).cloned();
    let questions = questions(conversation);
    // Who is asked, by which object and since when, the operator knows.
    (call.is_some() || !questions.is_empty()).then(|| WaitingFor { call, questions, ..WaitingFor::default() })
}

/// What people are asked, once nothing else goes on: a conversation that still has something to do does not wait.
fn questions(conversation: &Conversation) -> Vec<AskedQuestion> {
    let open = conversation.questions().open();
    if open.is_empty() || !matches!(step::next(conversation), Step::AskPeople(_)) {
        return Vec::new();
    }
    open.iter().take(WaitingFor::MAX_QUESTIONS).map(question).collect()
}

fn question(open: &OpenQuestion) -> AskedQuestion {
    let OpenQuestion { question, about: _, refused } = open;
    let choice = |choice: &String| bounded(choice, AskedQuestion::MAX_CHOICE);
    AskedQuestion {
        id: question.id.to_string(),
        text: bounded(&question.text, AskedQuestion::MAX_TEXT),
        choices: question.choices.iter().take(AskedQuestion::MAX_CHOICES).map(choice).collect(),
        refused: refused.as_ref().map(|refused| bounded(refused, AskedQuestion::MAX_REFUSED)),
    }
}

/// The replies that belong nowhere: told, so that whoever gave one gives it again.
fn stray_replies(conversation: &Conversation) -> Vec<String> {
    let stray = conversation.questions().stray();
    stray.iter().rev().take(MAX_REMARKS).rev().map(|reply| bounded(&stray_reply(reply), MAX_REMARK)).collect()
}

fn stray_reply(reply: &StrayReply) -> String {
    let StrayReply { question, text, by: _, nth, answered } = reply;
    let nth = nth.map(|nth| format!(" {nth}")).unwrap_or_default();
    let why = if *answered { "was answered before" } else { "nobody has asked" };
    format!("reply{nth} is to {question}, which {why}: {:?}", bounded(text, 128))
}

/// What people need to know of the call that is held, the first of them, with the `events` before it.
pub fn hold(conversation: &Conversation, events: Vec<String>) -> Option<Hold> {
    let held = people::asks(conversation).into_iter().find_map(|ask| match ask {
        Ask::Call(held) => Some(held),
        Ask::Question(_) => None,
    })?;
    let rule = |reason: &RulingReason| HoldRule {
        layer: reason.layer,
        text: bounded(&reason.detail, ApprovalSpec::MAX_RULE),
        approver: reason.approver.clone(),
    };
    let engine = conversation.run().skill.engine.as_ref();
    Some(Hold {
        call: held.call.to_string(),
        arguments: held.arguments.to_owned(),
        rules: held.reasons.iter().take(ApprovalSpec::MAX_RULES).map(rule).collect(),
        goal: bounded(held.goal, ApprovalSpec::MAX_GOAL),
        events,
        expiry_seconds: engine.and_then(|engine| engine.approval_expiry.as_ref()).map(seconds),
    })
}

/// The part that fits into `Job.status`.
fn bounded_intent(intent: &DetectedIntent) -> DetectedIntent {
    let fits = serde_json::to_string(&intent.entities).is_ok_and(|text| text.len() <= MAX_ENTITIES);
    let entities = if fits { intent.entities.clone() } else { serde_json::Map::new() };
    DetectedIntent { entities, ..intent.clone() }
}

fn usage(conversation: &Conversation) -> Usage {
    let budget = conversation.budget();
    Usage {
        llm_calls: budget.requests().clone(),
        input_tokens: budget.input_tokens(),
        cached_input_tokens: budget.cached_tokens(),
        output_tokens: budget.output_tokens(),
        tool_calls: conversation.tool_calls(),
        seconds: budget.worked_ms() / 1000,
    }
}
