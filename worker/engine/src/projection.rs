//! What others see of a conversation: `Job.status`, folded from the log and from nothing else.

use crate::conversation::Conversation;
use bloomery_crds::outcome::Phase;
use bloomery_crds::report::Projection;
use bloomery_crds::v1alpha1::{Gates, LlmCalls, LogPosition, Usage};

/// Projects a conversation whose log stands at `log`.
pub fn project(conversation: &Conversation, log: LogPosition) -> Projection {
    Projection {
        phase: phase(conversation),
        outcome: conversation.outcome().cloned(),
        result: conversation.result().map(crate::event::WholeResult::bounded),
        gates: Gates {
            pre_tool: conversation.pre_tool().clone(),
            finalization: conversation.finalization().projection(),
        },
        usage: usage(conversation),
        log,
    }
}

fn phase(conversation: &Conversation) -> Phase {
    if let Some(outcome) = conversation.outcome() {
        return outcome.code.phase();
    }
    if conversation.parked().is_some() {
        return Phase::Queued;
    }
    if conversation.finalization().pending().is_some() || conversation.finalization().passed() {
        return Phase::Finalizing;
    }
    Phase::Running
}

fn usage(conversation: &Conversation) -> Usage {
    let budget = conversation.budget();
    Usage {
        llm_calls: LlmCalls { plan: budget.requests() },
        input_tokens: budget.input_tokens(),
        output_tokens: budget.output_tokens(),
        tool_calls: conversation.tool_calls(),
        seconds: budget.worked_ms() / 1000,
    }
}
