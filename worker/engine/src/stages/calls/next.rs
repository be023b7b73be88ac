//! The steps of the calls.

use super::rule::ruled;
use super::state::{Call, CallState};
use super::subgoal;
use crate::conversation::Conversation;
use crate::core_tools::{ASK_USER, SUBGOAL_DONE};
use crate::event::{Arguments, Event};
use crate::people;
use crate::shared::Shared;
use crate::stages::questions;
use crate::step::{Step, ToolCall};
use bloomery_crds::Digest;
use bloomery_crds::canonical::{self, CanonicalJson};
use bloomery_crds::v1alpha1;
use serde_json::Value;

/// The largest arguments of a call, in bytes (`docs/explanation/engine.md`, section 3).
const MAX_ARGUMENTS_BYTES: usize = 64 * 1024;

/// Returns the next step of the calls, or nothing when all of them are settled.
pub(crate) fn next(conversation: &Conversation) -> Option<Step<'_>> {
    let shared = &conversation.shared;
    let calls = shared.calls.all();
    if calls.iter().any(|call| call.arguments.is_none()) {
        return Some(Step::Record(calls.iter().map(requested).collect()));
    }
    let first = calls.iter().position(|call| !call.is_settled())?;
    let call = calls.get(first)?;
    if call.tool == SUBGOAL_DONE {
        return Some(close_subgoal(call, shared));
    }
    if call.tool == ASK_USER {
        return Some(questions::next(calls.get(first..).unwrap_or_default(), shared));
    }
    if is_read(call, shared) {
        return Some(reads(calls.get(first..).unwrap_or_default(), shared));
    }
    let before = calls.get(..first).unwrap_or_default();
    if let Some(earlier) = before.iter().find(|call| call.was_not_completed() && !is_read(call, shared)) {
        return Some(Step::Record(vec![Event::ToolSkipped { call: call.id.clone(), because: earlier.id.clone() }]));
    }
    Some(effect(call, shared))
}

fn requested(call: &Call) -> Event {
    Event::ToolRequested { call: call.id.clone(), tool: call.tool.clone(), arguments: arguments(call) }
}

/// Converts arguments to the canonical form, which is ruled on and sent. Some models write nothing for no arguments.
fn arguments(call: &Call) -> Arguments {
    let malformed = |reason: String| Arguments::Malformed { reason };
    if call.cut {
        return malformed("the answer was cut off at the model's length limit: ask for less at once".to_owned());
    }
    let raw = if call.raw_arguments.trim().is_empty() { "{}" } else { &call.raw_arguments };
    if raw.len() > MAX_ARGUMENTS_BYTES {
        return malformed(format!("the arguments have {} bytes, more than {MAX_ARGUMENTS_BYTES}", raw.len()));
    }
    match canonical::parse(raw) {
        Ok(value) if canonical::depth(&value) > canonical::MAX_DEPTH => {
            malformed(format!("the arguments are nested more than {} deep", canonical::MAX_DEPTH))
        }
        Ok(value @ Value::Object(_)) => Arguments::Canonical(CanonicalJson::new(value)),
        Ok(_) => malformed("the arguments are not a JSON object".to_owned()),
        Err(error) => malformed(format!("the arguments cannot be used: {error}")),
    }
}

fn is_read(call: &Call, shared: &Shared) -> bool {
    ![ASK_USER, SUBGOAL_DONE].contains(&call.tool.as_str())
        && shared.catalogue.tool(&call.tool).is_some_and(|tool| tool.read_only)
}

/// The next step of a call of `subgoal_done`.
fn close_subgoal<'a>(call: &Call, shared: &'a Shared) -> Step<'a> {
    match call.state {
        CallState::Requested => Step::Record(ruled(call, shared)),
        CallState::Held | CallState::AwaitingReply => Step::AskPeople(people::open_requests(shared)),
        CallState::Ruled | CallState::Started { .. } | CallState::Retry | CallState::Settled(_) => {
            Step::Record(subgoal::close(call, &shared.rules.workflows))
        }
    }
}

fn reads<'a>(from: &'a [Call], shared: &'a Shared) -> Step<'a> {
    let mut side_by_side: Vec<&Call> =
        from.iter().take_while(|call| is_read(call, shared)).filter(|call| !call.is_settled()).collect();
    // One ruling at a time: the limit of tool calls counts the calls that were allowed before.
    if let Some(at) = side_by_side.iter().position(|call| call.state == CallState::Requested) {
        let not_ruled = side_by_side.split_off(at);
        if let Some(call) = not_ruled.first().filter(|call| !depends_on(&side_by_side, call, shared)) {
            return Step::Record(ruled(call, shared));
        }
    }
    let allowed: Vec<ToolCall<'a>> = side_by_side
        .into_iter()
        .filter(|call| call.state != CallState::Held)
        .filter_map(|call| tool_call(call, shared))
        .collect();
    if allowed.is_empty() { Step::AskPeople(people::open_requests(shared)) } else { Step::RunReads(allowed) }
}

/// Returns whether a workflow wants one of these reads before the call. The read then runs first, so that the gate does
/// not deny a call that the model asked for in the right order.
fn depends_on(reads: &[&Call], call: &Call, shared: &Shared) -> bool {
    let name = |call: &Call| shared.catalogue.tool(&call.tool).map(|tool| tool.name.as_str());
    let missing = name(call).map(|name| shared.rules.workflows.missing_before(name)).unwrap_or_default();
    missing.iter().any(|missing| reads.iter().any(|read| name(read) == Some(missing.step)))
}

fn effect<'a>(call: &'a Call, shared: &'a Shared) -> Step<'a> {
    let lost = || {
        Step::Record(vec![Event::ToolIndeterminate {
            call: call.id.clone(),
            text: "the worker was lost while the call was under way".to_owned(),
        }])
    };
    match call.state {
        CallState::Requested => Step::Record(ruled(call, shared)),
        CallState::Held | CallState::AwaitingReply => Step::AskPeople(people::open_requests(shared)),
        // A worker was lost during the call. This is decided before anything else may run.
        CallState::Started { .. } => lost(),
        CallState::Ruled | CallState::Retry | CallState::Settled(_) => {
            tool_call(call, shared).map_or_else(lost, Step::RunEffect)
        }
    }
}

fn timeout(shared: &Shared, tool: &str) -> Option<u64> {
    let declared = shared.run.skill.tools.iter().find(|declared| declared.name == tool)?;
    declared.timeout.as_ref().map(v1alpha1::seconds)
}

fn tool_call<'a>(call: &'a Call, shared: &'a Shared) -> Option<ToolCall<'a>> {
    let tool = shared.catalogue.tool(&call.tool)?;
    let Some(Arguments::Canonical(arguments)) = &call.arguments else { return None };
    Some(ToolCall {
        id: &call.id,
        tool: &tool.name,
        arguments: arguments.text(),
        key: Digest::of_bytes(format!("{}\n{}", shared.run.run_key, call.id).as_bytes()),
        idempotent: tool.idempotent,
        read_only: tool.read_only,
        sent_before: !tool.read_only && call.tries > 0,
        source: tool.source,
        definition: &tool.digest,
        timeout_seconds: timeout(shared, &tool.name),
    })
}
