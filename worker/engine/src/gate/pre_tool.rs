//! The pre-tool gate (`engine.md`, section 3): mechanical, layer by layer, the strictest verdict wins and
//! carries every reason of its rank.

use crate::conversation::{Call, Conversation};
use crate::event::{Arguments, RulingReason};
use crate::gate::catalogue::policy_refusal;
use bloomery_crds::v1alpha1::{GateReason, Verdict};
use serde_json::Value;

/// What the gate says of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ruling {
    /// The strictest verdict of all layers.
    pub verdict: Verdict,
    /// Every reason of that rank.
    pub reasons: Vec<RulingReason>,
}

/// Rules on a call: catalogue -> `policy.tools` -> argument schema -> limits.
pub fn rule(call: &Call, conversation: &Conversation) -> Ruling {
    let reasons: Vec<RulingReason> = [
        catalogue(call, conversation),
        policy(call, conversation),
        arguments(call, conversation),
        limits(conversation),
    ]
    .into_iter()
    .flatten()
    .collect();
    let verdict = if reasons.is_empty() { Verdict::Allow } else { Verdict::Deny };
    Ruling { verdict, reasons }
}

fn reason(layer: GateReason, detail: impl Into<String>) -> RulingReason {
    RulingReason { layer, detail: detail.into() }
}

fn catalogue(call: &Call, conversation: &Conversation) -> Option<RulingReason> {
    conversation
        .tool(&call.tool)
        .is_none()
        .then(|| reason(GateReason::Catalogue, format!("there is no tool {:?}", bounded_name(&call.tool))))
}

fn policy(call: &Call, conversation: &Conversation) -> Option<RulingReason> {
    let tool = conversation.tool(&call.tool)?;
    let policy = conversation.run().skill.policy.as_ref().and_then(|policy| policy.tools.as_ref());
    policy_refusal(policy, &tool.name).map(|detail| reason(GateReason::Policy, detail))
}

fn arguments(call: &Call, conversation: &Conversation) -> Option<RulingReason> {
    let detail = match &call.arguments {
        None => Some("the call has no arguments on record".to_owned()),
        Some(Arguments::Malformed { reason }) => Some(reason.clone()),
        Some(Arguments::Canonical { text, .. }) => {
            let schema = conversation.schema(&call.tool)?;
            match serde_json::from_str::<Value>(text) {
                Ok(value) => schema.fault(&value),
                Err(error) => Some(error.to_string()),
            }
        }
    };
    detail.map(|detail| reason(GateReason::Schema, detail))
}

fn limits(conversation: &Conversation) -> Option<RulingReason> {
    let limit = conversation.run().limits.tool_calls;
    (conversation.tool_calls() >= limit)
        .then(|| reason(GateReason::Limit, format!("all {limit} tool calls of limits.toolCalls are spent")))
}

fn bounded_name(name: &str) -> String {
    bloomery_crds::text::bounded(name, 128)
}
