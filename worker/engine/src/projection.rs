//! The projection of a conversation into `Job.status`. It depends on the log only.

use crate::conversation::Conversation;
use crate::event::RulingReason;
use crate::next::next;
use crate::people::{self, HumanRequest};
use crate::shared::Shared;
use crate::stages::questions::{OpenQuestion, StrayReply};
use crate::step::Step;
use bloomery_crds::outcome::{Outcome, Phase};
use bloomery_crds::report::{
    HeldCallDetails, MAX_ENTITIES_BYTES, MAX_REMARK_BYTES, MAX_REMARKS, MAX_TOOL_NAME_BYTES, MAX_TOOL_NAMES, Projection,
};
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{
    ApprovalSpec, AskedQuestion, ChildrenUsage, DetectedIntent, Gates, HoldRule, LogPosition, ToolName, Usage,
    WaitingFor, whole_seconds,
};

/// The longest quote of a reply in `Job.status`, in bytes.
const MAX_QUOTE_BYTES: usize = 128;

/// Projects a conversation. `log` is the position of its log.
pub fn project(conversation: &Conversation, log: LogPosition) -> Projection {
    let shared = &conversation.shared;
    Projection {
        phase: phase(conversation),
        outcome: conversation.outcome().cloned(),
        result: conversation.result().map(crate::event::FullResult::bounded),
        gates: Gates {
            intent: shared.intent.as_ref().map(bounded_intent),
            pre_tool: shared.calls.rulings().clone(),
            finalization: conversation.finalization.projection(),
        },
        features: conversation.validation.results().cloned().collect(),
        workflows: shared.rules.workflows.projection(),
        tool_names: tool_names(shared),
        waiting_for: waiting_for(conversation),
        replies_heard: shared.questions.replies_read(),
        stray_replies: stray_replies(shared),
        remarks: remarks(shared),
        tools_changed: shared.catalogue.drift_remarks().next().is_some(),
        usage: usage(conversation),
        log,
    }
}

/// Projects a conversation whose log the Job must not use ([`Conversation::refusal`]). Its result is not that of the Job.
pub fn project_refused(conversation: &Conversation, outcome: Outcome, log: LogPosition) -> Projection {
    let projection = project(conversation, log);
    Projection { phase: outcome.phase(), outcome: Some(outcome), result: None, waiting_for: None, ..projection }
}

/// Returns the remarks about changed tools, then those about the Skill.
fn remarks(shared: &Shared) -> Vec<String> {
    let remarks = shared.catalogue.drift_remarks().chain(shared.rules.remarks.iter().cloned());
    remarks.take(MAX_REMARKS).map(|remark| bounded(&remark, MAX_REMARK_BYTES)).collect()
}

/// Returns the visible tools whose alias differs from the name that their server uses.
fn tool_names(shared: &Shared) -> Vec<ToolName> {
    let renamed = shared.catalogue.visible().iter().filter(|tool| tool.alias != tool.name);
    let shown =
        renamed.map(|tool| ToolName { tool: bounded(&tool.name, MAX_TOOL_NAME_BYTES), alias: tool.alias.clone() });
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
    if conversation.finalization.pending().is_some() || conversation.finalization.passed() {
        return Phase::Finalizing;
    }
    Phase::Running
}

/// Returns the held call and the questions that the conversation waits for.
fn waiting_for(conversation: &Conversation) -> Option<WaitingFor> {
    let call = conversation.shared.calls.held().filter(|_| conversation.outcome().is_none()).cloned();
    let questions = questions(conversation);
    // The operator adds the approvers' objects and the time.
    (call.is_some() || !questions.is_empty()).then(|| WaitingFor { call, questions, ..WaitingFor::default() })
}

/// Returns the open questions, if the next step is to ask people.
fn questions(conversation: &Conversation) -> Vec<AskedQuestion> {
    let open = conversation.questions().open();
    if open.is_empty() || !matches!(next(conversation), Step::AskPeople(_)) {
        return Vec::new();
    }
    open.iter().take(WaitingFor::MAX_QUESTIONS).map(asked_question).collect()
}

fn asked_question(open: &OpenQuestion) -> AskedQuestion {
    let OpenQuestion { question, about: _, refused } = open;
    let choice = |choice: &String| bounded(choice, AskedQuestion::MAX_CHOICE_BYTES);
    AskedQuestion {
        id: question.id.to_string(),
        text: bounded(&question.text, AskedQuestion::MAX_TEXT_BYTES),
        choices: question.choices.iter().take(AskedQuestion::MAX_CHOICES).map(choice).collect(),
        refused: refused.as_ref().map(|refused| bounded(refused, AskedQuestion::MAX_REFUSED_BYTES)),
    }
}

/// Describes the latest replies to questions that are not open, so that people can give them again.
fn stray_replies(shared: &Shared) -> Vec<String> {
    let stray = shared.questions.stray_replies();
    let latest = stray.iter().rev().take(MAX_REMARKS).rev();
    latest.map(|reply| bounded(&describe_stray_reply(reply), MAX_REMARK_BYTES)).collect()
}

fn describe_stray_reply(reply: &StrayReply) -> String {
    let StrayReply { question, text, by: _, nth, answered } = reply;
    let number = nth.map(|nth| format!(" {nth}")).unwrap_or_default();
    let state = if *answered { "was answered before" } else { "was never asked" };
    format!("reply{number} is to {question}, which {state}: {:?}", bounded(text, MAX_QUOTE_BYTES))
}

/// Returns the details of the first held call, for its approvers. `events` describe the latest events of the conversation.
pub fn first_hold(conversation: &Conversation, events: Vec<String>) -> Option<HeldCallDetails> {
    let held = people::open_requests(&conversation.shared).into_iter().find_map(|request| match request {
        HumanRequest::Approval(held) => Some(held),
        HumanRequest::Question(_) => None,
    })?;
    let rule = |reason: &RulingReason| HoldRule {
        layer: reason.layer,
        text: bounded(&reason.detail, ApprovalSpec::MAX_RULE_BYTES),
        approver: reason.approver.clone(),
    };
    let engine = conversation.run().skill.engine.as_ref();
    Some(HeldCallDetails {
        call: held.call.to_string(),
        arguments: held.arguments.to_owned(),
        rules: held.reasons.iter().take(ApprovalSpec::MAX_RULES).map(rule).collect(),
        goal: bounded(held.goal, ApprovalSpec::MAX_GOAL_BYTES),
        events,
        expiry_seconds: engine.and_then(|engine| engine.approval_expiry.as_ref()).map(whole_seconds),
    })
}

/// Returns the intent for `Job.status`. Entities that are too large are left out.
fn bounded_intent(intent: &DetectedIntent) -> DetectedIntent {
    let fits = serde_json::to_string(&intent.entities).is_ok_and(|text| text.len() <= MAX_ENTITIES_BYTES);
    let entities = if fits { intent.entities.clone() } else { serde_json::Map::new() };
    DetectedIntent { entities, ..intent.clone() }
}

/// Returns the usage of the conversation, including the tests of features.
fn usage(conversation: &Conversation) -> Usage {
    let shared = &conversation.shared;
    let budget = &shared.budget;
    let mut usage = Usage {
        llm_calls: budget.requests().clone(),
        input_tokens: budget.input_tokens(),
        cached_input_tokens: budget.cached_tokens(),
        output_tokens: budget.output_tokens(),
        by_model: budget.by_model().cloned().collect(),
        tool_calls: shared.calls.rulings().allowed,
        seconds: budget.worked_ms() / 1000,
        children: (*budget.children() != ChildrenUsage::default()).then(|| *budget.children()),
    };
    usage.add(conversation.validation.usage());
    usage
}
