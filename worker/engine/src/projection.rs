//! What others see of a conversation: `Job.status`, folded from the log and from nothing else.

use crate::bootstrap::workflows::Status;
use crate::conversation::Conversation;
use bloomery_crds::outcome::Phase;
use bloomery_crds::report::Projection;
use bloomery_crds::v1alpha1::{DetectedIntent, Gates, LogPosition, Usage, WaitingFor, WorkflowProgress};

/// The most that status holds of the entities of a goal, in bytes of JSON.
const MAX_ENTITIES: usize = 2048;

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
        workflows: workflows(conversation),
        waiting_for: waiting_for(conversation),
        remarks: conversation.rules().remarks.clone(),
        usage: usage(conversation),
        log,
    }
}

fn phase(conversation: &Conversation) -> Phase {
    if let Some(outcome) = conversation.outcome() {
        return outcome.phase();
    }
    if waiting_for(conversation).is_some() {
        return Phase::AwaitingApproval;
    }
    if conversation.parked().is_some() {
        return Phase::Queued;
    }
    if conversation.finalization().pending().is_some() || conversation.finalization().passed() {
        return Phase::Finalizing;
    }
    Phase::Running
}

/// The workflows of the Skill, with the steps that are done, that do not apply, and that are open.
fn workflows(conversation: &Conversation) -> Vec<WorkflowProgress> {
    let mut workflows: Vec<WorkflowProgress> = Vec::new();
    for goal in conversation.rules().workflows.sub_goals() {
        if workflows.last().is_none_or(|workflow| workflow.name != goal.from_workflow) {
            let (name, required) = (goal.from_workflow, goal.workflow_required);
            workflows.push(WorkflowProgress { name, required, ..WorkflowProgress::default() });
        }
        let Some(workflow) = workflows.last_mut() else { continue };
        match goal.status {
            Status::Done { .. } => workflow.done.push(goal.intent),
            Status::NotApplicable { .. } => workflow.not_applicable.push(goal.intent),
            Status::Todo => workflow.open.push(goal.intent),
        }
    }
    workflows
}

fn waiting_for(conversation: &Conversation) -> Option<WaitingFor> {
    let call = conversation.held().filter(|_| conversation.outcome().is_none())?;
    Some(WaitingFor { call: Some(call.clone()) })
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
        output_tokens: budget.output_tokens(),
        tool_calls: conversation.tool_calls(),
        seconds: budget.worked_ms() / 1000,
    }
}
