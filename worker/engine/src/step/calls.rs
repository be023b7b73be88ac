//! What is to be done with the calls of the last answer.
//!
//! Calls are taken in the order of the answer. Reads that stand side by side run at once; calls with effect
//! are a sequence, each ruled just before its start, and one that falls through makes the later ones skipped.

mod closing;
mod questions;

use super::{Step, ToolCall};
use crate::conversation::{Call, CallState, Conversation};
use crate::event::{Arguments, Event};
use crate::gate::core_tools::{ASK_USER, SUBGOAL_DONE};
use crate::gate::pre_tool;
use crate::people;
use bloomery_crds::Digest;
use bloomery_crds::canonical::{self, Document};
use bloomery_crds::v1alpha1;
use serde_json::Value;

/// The largest arguments of a call, in bytes (`engine.md`, section 3).
const MAX_ARGUMENTS: usize = 64 * 1024;

/// The next step of the calls, or nothing when all of them are settled.
pub(super) fn next(conversation: &Conversation) -> Option<Step<'_>> {
    let calls = conversation.calls();
    if calls.iter().any(|call| call.arguments.is_none()) {
        return Some(Step::Record(calls.iter().map(requested).collect()));
    }
    let first = calls.iter().position(|call| !call.is_settled())?;
    let call = calls.get(first)?;
    if call.tool == SUBGOAL_DONE {
        return Some(own(call, conversation));
    }
    if call.tool == ASK_USER {
        return Some(questions::next(calls.get(first..).unwrap_or_default(), conversation));
    }
    if is_read(call, conversation) {
        return Some(reads(calls.get(first..).unwrap_or_default(), conversation));
    }
    let before = calls.get(..first).unwrap_or_default();
    if let Some(fallen) = before.iter().find(|call| call.fell_through() && !is_read(call, conversation)) {
        return Some(Step::Record(vec![Event::ToolSkipped { call: call.id.clone(), because: fallen.id.clone() }]));
    }
    Some(effect(call, conversation))
}

/// Ends what can no longer be done, so that each call has its one result. One that was sent was not skipped.
pub(super) fn skip_rest(conversation: &Conversation, because: &Call) -> Vec<Event> {
    let rest = conversation.calls().iter().filter(|call| !call.is_settled() && !call.is_under_way(conversation));
    rest.map(|call| Event::ToolSkipped { call: call.id.clone(), because: because.id.clone() }).collect()
}

fn requested(call: &Call) -> Event {
    Event::ToolRequested { call: call.id.clone(), tool: call.tool.clone(), arguments: arguments(call) }
}

/// Brings arguments into the one form that is ruled on and sent. Some models write nothing for no arguments.
fn arguments(call: &Call) -> Arguments {
    let malformed = |reason: String| Arguments::Malformed { reason };
    if call.cut {
        return malformed("the answer was cut off at the model's length limit: ask for less at once".to_owned());
    }
    let raw = if call.raw_arguments.trim().is_empty() { "{}" } else { &call.raw_arguments };
    if raw.len() > MAX_ARGUMENTS {
        return malformed(format!("the arguments have {} bytes, more than {MAX_ARGUMENTS}", raw.len()));
    }
    match canonical::parse(raw) {
        Ok(value) if canonical::depth(&value) > canonical::MAX_DEPTH => {
            malformed(format!("the arguments are nested more than {} deep", canonical::MAX_DEPTH))
        }
        Ok(value @ Value::Object(_)) => Arguments::Canonical(Document::new(value)),
        Ok(_) => malformed("the arguments are not a JSON object".to_owned()),
        Err(error) => malformed(format!("the arguments cannot be used: {error}")),
    }
}

fn is_read(call: &Call, conversation: &Conversation) -> bool {
    ![ASK_USER, SUBGOAL_DONE].contains(&call.tool.as_str())
        && conversation.tool(&call.tool).is_some_and(|tool| tool.read_only)
}

/// A call that the engine itself answers.
fn own<'a>(call: &Call, conversation: &'a Conversation) -> Step<'a> {
    match call.state {
        CallState::Asked => Step::Record(ruled(call, conversation)),
        CallState::Held | CallState::Asking => Step::AskPeople(people::asks(conversation)),
        CallState::Ruled | CallState::Started { .. } | CallState::Retry | CallState::Settled(_) => {
            Step::Record(closing::close(call, conversation))
        }
    }
}

fn reads<'a>(from: &'a [Call], conversation: &'a Conversation) -> Step<'a> {
    let mut side_by_side: Vec<&Call> =
        from.iter().take_while(|call| is_read(call, conversation)).filter(|call| !call.is_settled()).collect();
    // One at a time: the limit of tool calls counts what was allowed before.
    if let Some(at) = side_by_side.iter().position(|call| call.state == CallState::Asked) {
        let not_ruled = side_by_side.split_off(at);
        if let Some(call) = not_ruled.first().filter(|call| !waits_for_one_of(&side_by_side, call, conversation)) {
            return Step::Record(ruled(call, conversation));
        }
    }
    let allowed: Vec<ToolCall<'a>> = side_by_side
        .into_iter()
        .filter(|call| call.state != CallState::Held)
        .filter_map(|call| tool_call(call, conversation))
        .collect();
    if allowed.is_empty() { Step::AskPeople(people::asks(conversation)) } else { Step::RunReads(allowed) }
}

/// Whether a workflow wants one of these reads to be done first: then it is done first, and not denied for what the
/// model asked for in the right order.
fn waits_for_one_of(reads: &[&Call], call: &Call, conversation: &Conversation) -> bool {
    let name = |call: &Call| conversation.tool(&call.tool).map(|tool| tool.name.as_str());
    let missing = name(call).map(|name| conversation.rules().workflows.missing_before(name)).unwrap_or_default();
    missing.iter().any(|missing| reads.iter().any(|read| name(read) == Some(missing.step)))
}

fn effect<'a>(call: &'a Call, conversation: &'a Conversation) -> Step<'a> {
    let lost = || {
        Step::Record(vec![Event::ToolIndeterminate {
            call: call.id.clone(),
            text: "the worker was lost while the call was under way".to_owned(),
        }])
    };
    match call.state {
        CallState::Asked => Step::Record(ruled(call, conversation)),
        CallState::Held | CallState::Asking => Step::AskPeople(people::asks(conversation)),
        // What was started is decided here, before anything else may run.
        CallState::Started { .. } => lost(),
        CallState::Ruled | CallState::Retry | CallState::Settled(_) => {
            tool_call(call, conversation).map_or_else(lost, Step::RunEffect)
        }
    }
}

/// The ruling on a call; and where it is held, what a person is asked.
fn ruled(call: &Call, conversation: &Conversation) -> Vec<Event> {
    let ruling = pre_tool::rule(call, conversation);
    let held = pre_tool::held(call, &ruling);
    let ruled = Event::ToolRuled { call: call.id.clone(), verdict: ruling.verdict, reasons: ruling.reasons };
    std::iter::once(ruled).chain(held.map(|held| Event::ToolHeld { held })).collect()
}

fn timeout(conversation: &Conversation, tool: &str) -> Option<u64> {
    let declared = conversation.run().skill.tools.iter().find(|declared| declared.name == tool)?;
    declared.timeout.as_ref().map(v1alpha1::seconds)
}

fn tool_call<'a>(call: &'a Call, conversation: &'a Conversation) -> Option<ToolCall<'a>> {
    let tool = conversation.tool(&call.tool)?;
    let Some(Arguments::Canonical(arguments)) = &call.arguments else { return None };
    Some(ToolCall {
        id: &call.id,
        tool: &tool.name,
        arguments: arguments.text(),
        key: Digest::of_bytes(format!("{}\n{}", conversation.run().run_key, call.id).as_bytes()),
        idempotent: tool.idempotent,
        read_only: tool.read_only,
        sent_before: !tool.read_only && call.tries > 0,
        source: tool.source,
        definition: &tool.digest,
        timeout_seconds: timeout(conversation, &tool.name),
    })
}
