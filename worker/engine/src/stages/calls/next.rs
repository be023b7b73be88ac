//! The next step of the calls of the latest answer.

use super::child;
use super::gate::{self, Gate};
use super::state::{Call, CallState, Child};
use super::subgoal;
use crate::conversation::Conversation;
use crate::core_tools::{ASK_USER, SUBGOAL_DONE};
use crate::event::{Arguments, CallId, Event};
use crate::people;
use crate::rules::limits::Reservation;
use crate::shared::Shared;
use crate::stages::{approval, questions};
use crate::step::{Step, ToolCall};
use bloomery_crds::Digest;
use bloomery_crds::canonical::CanonicalJson;
use bloomery_crds::v1alpha1::{self, Verdict};
use serde_json::Value;

/// The largest arguments of a call, in bytes (`docs/explanation/engine.md`, section 3).
const MAX_ARGUMENTS_BYTES: usize = 64 * 1024;

/// The way in which a call is performed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallKind {
    /// A call of a tool that changes nothing. Adjacent reads run at once.
    Read,
    /// A call of `ask_user`, which people answer. Adjacent questions are asked at once.
    Question,
    /// A call of `subgoal_done`, which the engine answers.
    SubgoalDone,
    /// A call that invokes a Skill. It ends with its child.
    Child,
    /// Any other call, including a call of an unknown tool.
    Effect,
}

/// Returns the next step of the calls, or nothing when all of them are settled.
pub(crate) fn next(conversation: &Conversation) -> Option<Step<'_>> {
    let shared = &conversation.shared;
    if let Some(call) = shared.to_give_back.first() {
        return Some(Step::GiveBack { call, key: call_key(call, shared) });
    }
    let calls = shared.calls.all();
    if calls.iter().any(|call| call.arguments.is_none()) {
        return Some(Step::Record(calls.iter().map(tool_requested).collect()));
    }
    let first = calls.iter().position(|call| !call.is_settled())?;
    let (before, open) = calls.split_at_checked(first)?;
    let kind = kind_of(open.first()?, shared);
    if matches!(kind, CallKind::Effect | CallKind::Child)
        && let Some(skipped) = skip_after_failure(open.first()?, before, shared)
    {
        return Some(Step::Record(vec![skipped]));
    }
    let mut group = group(kind, open, shared);
    // Rule on one call at a time, because the limit of tool calls counts the calls that were allowed before. The gate rules on
    // calls nowhere else.
    if let Some(index) = group.iter().position(|call| call.state == CallState::Requested) {
        let not_ruled = group.split_off(index);
        if let Some(call) = not_ruled.first().filter(|call| !depends_on(&group, call, shared)) {
            return Some(rule_or_reserve(call, shared));
        }
    }
    group.retain(|call| !matches!(call.state, CallState::Held | CallState::AwaitingReply));
    // The ruling may be that of an earlier worker, and the log alone allows no call.
    if let Some(call) = group.iter().find(|call| !gate::confirms(call, &Gate::new(shared))) {
        return Some(rule_or_reserve(call, shared));
    }
    let step = match kind {
        CallKind::Read => run_reads(&group, shared),
        CallKind::Question => questions::next(&group, shared),
        CallKind::SubgoalDone => group.first().map(|call| Step::Record(subgoal::close(call, &shared.rules.workflows))),
        CallKind::Child => group.first().map(|call| run_child(call, shared)),
        CallKind::Effect => group.first().map(|call| run_effect(call, shared)),
    };
    // Without a step, the whole group waits for people.
    Some(step.unwrap_or_else(|| Step::AskPeople(people::open_requests(shared))))
}

fn kind_of(call: &Call, shared: &Shared) -> CallKind {
    match call.tool.as_str() {
        ASK_USER => CallKind::Question,
        SUBGOAL_DONE => CallKind::SubgoalDone,
        _ if shared.is_read(call) => CallKind::Read,
        _ if shared.is_invocation(call) => CallKind::Child,
        _ => CallKind::Effect,
    }
}

/// Returns the first calls without a result that proceed together: adjacent reads, adjacent questions, or one other call.
fn group<'a>(kind: CallKind, open: &'a [Call], shared: &Shared) -> Vec<&'a Call> {
    let size = match kind {
        CallKind::Read | CallKind::Question => usize::MAX,
        CallKind::SubgoalDone | CallKind::Child | CallKind::Effect => 1,
    };
    let same_kind = open.iter().take_while(|call| kind_of(call, shared) == kind);
    same_kind.filter(|call| !call.is_settled()).take(size).collect()
}

/// Returns the event that skips a call with effect, if an earlier call of the answer was not completed. A failed read
/// skips nothing.
fn skip_after_failure(call: &Call, before: &[Call], shared: &Shared) -> Option<Event> {
    let stops_later_calls = |call: &&Call| call.was_not_completed() && kind_of(call, shared) != CallKind::Read;
    let earlier = before.iter().find(stops_later_calls)?;
    Some(Event::ToolSkipped { call: call.id.clone(), because: earlier.id.clone() })
}

/// Asks the gate about a call. If the rules allow the call, and a limit of the Skill applies to it, asks the ledger before the ruling.
fn rule_or_reserve<'a>(call: &'a Call, shared: &'a Shared) -> Step<'a> {
    let gate = Gate::new(shared);
    let ruling = gate::rule(call, &gate);
    if ruling.verdict == Verdict::Allow
        && gate::needs_reservation(call, &gate)
        && let Some(reservation) = reservation(call, shared)
    {
        return Step::Reserve(reservation);
    }
    let held = approval::held_call(call, &ruling, shared);
    let ruled = Event::ToolRuled { call: call.id.clone(), verdict: ruling.verdict, reasons: ruling.reasons };
    Step::Record(std::iter::once(ruled).chain(held.map(|held| Event::ToolHeld { held })).collect())
}

/// Returns the reservation of a call. The second one is made after an approval, so it counts even beyond a limit.
fn reservation<'a>(call: &'a Call, shared: &'a Shared) -> Option<Reservation<'a>> {
    let tool = shared.catalogue.tool(&call.tool)?;
    let arguments = call.read_arguments().ok()?;
    let mut reservation = shared.rules.reservation(tool, arguments, &call.id, call_key(&call.id, shared))?;
    reservation.forced = call.reservation.is_some();
    Some(reservation)
}

fn tool_requested(call: &Call) -> Event {
    Event::ToolRequested { call: call.id.clone(), tool: call.tool.clone(), arguments: canonical_arguments(call) }
}

/// Converts arguments to the canonical form, which the gate rules on and the worker sends. An empty text means no
/// arguments.
fn canonical_arguments(call: &Call) -> Arguments {
    let malformed = |reason: String| Arguments::Malformed { reason };
    if call.cut {
        return malformed("the answer was cut off at the model's length limit: ask for less at once".to_owned());
    }
    let raw = if call.raw_arguments.trim().is_empty() { "{}" } else { &call.raw_arguments };
    if raw.len() > MAX_ARGUMENTS_BYTES {
        return malformed(format!("the arguments have {} bytes, more than {MAX_ARGUMENTS_BYTES}", raw.len()));
    }
    let arguments = match CanonicalJson::parse(raw) {
        Ok(arguments) => arguments,
        Err(error) => return malformed(format!("the arguments cannot be used: {error}")),
    };
    if !arguments.value().is_ok_and(Value::is_object) {
        return malformed("the arguments are not a JSON object".to_owned());
    }
    Arguments::Canonical(arguments)
}

/// Runs the reads. Reads that a lost worker had started run again.
fn run_reads<'a>(reads: &[&'a Call], shared: &'a Shared) -> Option<Step<'a>> {
    let calls: Vec<ToolCall<'a>> = reads.iter().filter_map(|call| tool_call(call, shared)).collect();
    (!calls.is_empty()).then_some(Step::RunReads(calls))
}

/// Returns whether a workflow requires one of the `earlier` calls before the call. The earlier call then runs first, so
/// that the gate does not deny a call that the model requested in the right order.
fn depends_on(earlier: &[&Call], call: &Call, shared: &Shared) -> bool {
    let name = |call: &Call| shared.catalogue.tool(&call.tool).map(|tool| tool.name.as_str());
    let missing = name(call).map(|name| shared.rules.workflows.missing_before(name)).unwrap_or_default();
    missing.iter().any(|missing| earlier.iter().any(|call| name(call) == Some(missing.step)))
}

/// Starts the child of a call, or waits for its end.
fn run_child<'a>(call: &'a Call, shared: &'a Shared) -> Step<'a> {
    match &call.child {
        Some(Child::Ended { text }) => {
            Step::Record(vec![Event::ToolCompleted { call: call.id.clone(), text: text.clone() }])
        }
        Some(Child::Open { skill, limits, .. }) => {
            child::request(call, skill, limits).map_or_else(|| lost_child(call), Step::AwaitChild)
        }
        // A worker records both events at once, so somebody else wrote this log.
        None if shared.is_effect_under_way(call) => lost_child(call),
        None => Step::InvokeSkill(&call.id),
    }
}

fn lost_child(call: &Call) -> Step<'_> {
    let text = "the log does not say which child was started".to_owned();
    Step::Record(vec![Event::ToolIndeterminate { call: call.id.clone(), text }])
}

/// Runs a call with effect. A call that a lost worker had started is indeterminate: it may have happened.
fn run_effect<'a>(call: &'a Call, shared: &'a Shared) -> Step<'a> {
    let was_started = matches!(call.state, CallState::Started { .. });
    match tool_call(call, shared).filter(|_| !was_started) {
        Some(call) => Step::RunEffect(call),
        None => Step::Record(vec![Event::ToolIndeterminate {
            call: call.id.clone(),
            text: "the worker was lost while the call was under way".to_owned(),
        }]),
    }
}

fn timeout_seconds(shared: &Shared, tool: &str) -> Option<u64> {
    let declared = shared.run.skill.declaration_of(tool)?;
    declared.timeout.as_ref().map(v1alpha1::whole_seconds)
}

fn tool_call<'a>(call: &'a Call, shared: &'a Shared) -> Option<ToolCall<'a>> {
    let tool = shared.catalogue.tool(&call.tool)?;
    let Some(Arguments::Canonical(arguments)) = &call.arguments else { return None };
    Some(ToolCall {
        id: &call.id,
        tool: &tool.name,
        arguments: arguments.text(),
        key: call_key(&call.id, shared),
        idempotent: tool.idempotent,
        read_only: shared.is_read(call),
        sent_before: !tool.read_only && call.tries > 0,
        source: tool.source,
        definition: &tool.digest,
        timeout_seconds: timeout_seconds(shared, &tool.name),
    })
}

/// Returns the key of a call, which is the same on every retry.
fn call_key(id: &CallId, shared: &Shared) -> Digest {
    Digest::of_bytes(format!("{}\n{id}", shared.run.run_key).as_bytes())
}
