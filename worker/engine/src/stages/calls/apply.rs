//! The fold of the events about calls.

use super::child;
use super::state::{Call, CallState, Settlement, failed_text};
use crate::core_tools;
use crate::event::{Answer, Arguments, CallId, Event, ReservationAnswer, RulingReason};
use crate::history::{ModelMessage, Turn};
use crate::line::Entry;
use crate::rules::workflows::{CompletedCall, StepStatus};
use crate::shared::Shared;
use crate::tool::CatalogueTool;
use bloomery_crds::scripts;
use bloomery_crds::v1alpha1::{Stage, Verdict};

/// The most times that a read, or a call of an idempotent tool, is sent.
const MAX_TRIES: u32 = 3;

/// The text of a lost call that is not sent again, because its tool has changed.
const TOOL_CHANGED: &str = "its answer was lost, and the server has changed the tool since, so it is not sent again";

/// Folds an event into the calls.
pub(crate) fn apply(entry: &Entry, shared: &mut Shared) {
    match &entry.event {
        Event::ModelAnswered { answer } if shared.model.stage == Stage::Plan => begin_calls(entry.seq, answer, shared),
        Event::ToolRequested { call, arguments, .. } => set_arguments(call, arguments, shared),
        Event::ToolRuled { call, verdict, reasons } => apply_ruling(call, *verdict, reasons, shared),
        Event::LimitsReserved { call, answer } => set_reservation(call, answer, shared),
        Event::LimitsReturned { call, .. } => shared.to_give_back.retain(|waiting| waiting != call),
        Event::ToolSkipped { call, because } => settle(call, Settlement::Skipped, &skipped_text(because), shared),
        Event::ToolStarted { call } => mark_started(call, shared),
        Event::ToolCompleted { call, text } => complete_with(call, text, /*result*/ Some(text), shared),
        Event::ToolFailed { call, text } => {
            child::take_failure(call, shared);
            fail(call, text, shared);
        }
        Event::ToolIndeterminate { call, text } => {
            child::take_loss(call, shared);
            retry_or_lose(call, text, shared);
        }
        Event::ChildStarted { call, job, skill, limits } => child::take_start(call, job, skill, limits, shared),
        Event::ChildCompleted { call, end } => child::take_end(call, end, shared),
        Event::ResultOffloaded { call, excerpt, .. } => take_excerpt(call, excerpt, shared),
        Event::CatalogueDrifted { changed, missing, .. } => apply_drift(changed, missing, shared),
        Event::CatalogueUnpinned { tools } => shared.catalogue.add_unpinned(tools),
        Event::SubgoalDone { step, evidence, not_applicable } => {
            shared.rules.workflows.close(step, step_status(*evidence, *not_applicable));
        }
        _ => {}
    }
}

/// Settles a call. When the last call of the answer is settled, all results join the history in the order of the calls. If that
/// call is lost, they join after a person has said whether it happened.
pub(crate) fn settle(id: &CallId, settlement: Settlement, text: &str, shared: &mut Shared) {
    let Some(call) = shared.calls.get_mut(id) else { return };
    call.state = CallState::Settled(settlement);
    text.clone_into(&mut call.result);
    if shared.calls.all().iter().any(|call| !call.is_settled()) || settlement == Settlement::Indeterminate {
        return;
    }
    for Call { id, state, provider_id, result, .. } in shared.calls.take_settled() {
        let turn = Turn::ToolResult { id: provider_id, text: result };
        if state == CallState::Settled(Settlement::Completed) {
            shared.history.add_result(id, turn, &mut shared.budget);
        } else {
            shared.add_turn(turn);
        }
    }
    shared.join_messages();
}

/// Settles a call whose result is not known completely, and records its evidence.
pub(crate) fn complete(id: &CallId, text: &str, shared: &mut Shared) {
    complete_with(id, text, /*result*/ None, shared);
}

/// Settles a call that was answered, and records its evidence. `text` is for the model, and `result` for conditions.
pub(crate) fn complete_with(id: &CallId, text: &str, result: Option<&str>, shared: &mut Shared) {
    let Some(tool) = tool_of(id, shared) else { return };
    // A list of Skills is no step of a workflow, no fact and no evidence.
    if !tool.read_only && shared.calls.get(id).is_some_and(|call| shared.is_read(call)) {
        return settle(id, Settlement::Completed, text, shared);
    }
    let (gives_evidence, name, read_only) = (core_tools::gives_evidence(tool), tool.name.clone(), tool.read_only);
    let Shared { calls, record, rules, seq, .. } = shared;
    let arguments = calls.get(id).and_then(|call| call.arguments.as_ref());
    // A read has no `tool.started`.
    if let Some(Arguments::Canonical(arguments)) = arguments.filter(|_| read_only) {
        record.add_call(&name, id, arguments);
    }
    record.add_result(&name, result);
    let mut text = text.to_owned();
    // A completed call completes its workflow step, even if the tool gives no evidence.
    if gives_evidence || rules.workflows.has_step(&name) {
        let arguments = calls.get(id).and_then(|call| call.read_arguments().ok());
        let call = CompletedCall { tool: &name, seq: *seq, arguments, result, facts: record.for_call(id) };
        for unmet in rules.workflows.record_completed(&call) {
            text = with_note(&text, &unmet);
        }
    }
    if gives_evidence && shared.calls.add_evidence(id) {
        shared.record_evidence();
    }
    if gives_evidence && shared.rules.workflows.wants_evidence() {
        text = with_note(&text, &format!("evidence: {}", shared.seq));
    }
    record_script(id, /*failure*/ None, shared);
    settle(id, Settlement::Completed, &text, shared);
}

/// Records the end of a call, if its tool is a script.
fn record_script(id: &CallId, failure: Option<&str>, shared: &mut Shared) {
    let script = tool_of(id, shared).filter(|tool| tool.name.starts_with(scripts::PREFIX));
    if let Some(tool) = script.map(|tool| tool.name.clone()) {
        shared.calls.record_script(tool, failure);
    }
}

/// Settles a call that failed, and so is known not to have happened.
pub(crate) fn fail(id: &CallId, text: &str, shared: &mut Shared) {
    shared.give_back(id);
    let times = shared.calls.count_failure(id);
    reopen_step(id, shared);
    record_script(id, Some(text), shared);
    settle(id, Settlement::Failed, &failed_text(text, times), shared);
}

/// Opens the workflow step of a read that failed. A failed call with effect is known not to have happened, and changes no step.
fn reopen_step(id: &CallId, shared: &mut Shared) {
    let read = tool_of(id, shared).filter(|tool| tool.read_only).map(|tool| tool.name.clone());
    if let Some(tool) = read {
        shared.rules.workflows.record_failed_read(&tool);
    }
}

fn begin_calls(seq: u64, answer: &Answer, shared: &mut Shared) {
    shared.add_turn(Turn::Assistant(ModelMessage::from(answer)));
    if !answer.calls.is_empty() {
        shared.calls.begin(seq, answer);
    }
}

fn set_arguments(id: &CallId, arguments: &Arguments, shared: &mut Shared) {
    // The first arguments stay: the gate and the approvers decide on them, and the worker sends them.
    if let Some(call) = shared.calls.get_mut(id).filter(|call| call.arguments.is_none()) {
        call.arguments = Some(arguments.clone());
    }
}

fn apply_ruling(id: &CallId, verdict: Verdict, reasons: &[RulingReason], shared: &mut Shared) {
    // A settled call stays settled. A worker does not rule on a call with effect that was started, so such a ruling is forged.
    let is_started = |call: &Call| matches!(call.state, CallState::Started { .. }) && shared.is_effect_under_way(call);
    if shared.calls.get(id).is_none_or(|call| call.is_settled() || is_started(call)) {
        return;
    }
    let Some(call) = shared.calls.get(id) else { return };
    let (tool, tries, is_read) = (call.tool.clone(), call.tries, shared.is_read(call));
    // A read has no `tool.started`: a lost worker may have sent one that was allowed.
    let may_have_happened = tries > 0 || is_read && call.state == CallState::Allowed;
    if verdict == Verdict::Deny && !may_have_happened {
        shared.give_back(id);
    }
    let Some(call) = shared.calls.get_mut(id) else { return };
    match verdict {
        Verdict::Allow => call.state = CallState::Allowed,
        Verdict::Hold => call.state = CallState::Held,
        Verdict::Deny => settle(id, Settlement::Denied, &denied_text(reasons, tries), shared),
    }
    shared.calls.count_ruling(&tool, verdict, reasons);
    if verdict == Verdict::Allow && is_read {
        shared.count_towards_limits(id);
    }
}

/// Sets the answer of the ledger, unless the call is settled.
fn set_reservation(id: &CallId, answer: &ReservationAnswer, shared: &mut Shared) {
    if let Some(call) = shared.calls.get_mut(id).filter(|call| !call.is_settled()) {
        call.reservation = Some(answer.clone());
    }
}

/// Marks a call as started. A worker starts only a call that the gate has allowed, so the event of another call is forged and changes
/// nothing.
fn mark_started(id: &CallId, shared: &mut Shared) {
    let epoch = shared.epoch;
    let is_startable = |call: &&mut Call| matches!(call.state, CallState::Allowed | CallState::Retry);
    let Some(call) = shared.calls.get_mut(id).filter(is_startable) else { return };
    call.state = CallState::Started { epoch };
    call.tries += 1;
    let (alias, arguments) = (call.tool.clone(), call.arguments.clone());
    let Shared { catalogue, record, rules, .. } = shared;
    if let Some(tool) = catalogue.tool(&alias) {
        rules.workflows.record_started(&tool.name, tool.read_only);
        if let Some(Arguments::Canonical(arguments)) = arguments {
            record.add_call(&tool.name, id, &arguments);
        }
    }
    shared.count_towards_limits(id);
}

/// Retries a call whose answer was lost, if its tool is read-only or idempotent and has not changed. If the call is not retried,
/// a read counts as failed and a call with effect as lost. A settled call stays settled.
fn retry_or_lose(id: &CallId, text: &str, shared: &mut Shared) {
    let tool = tool_of(id, shared);
    let (read_only, idempotent) = tool.map_or((false, false), |tool| (tool.read_only, tool.idempotent));
    let has_drifted = tool.is_some_and(|tool| shared.catalogue.drift_of(&tool.name).is_some());
    let Some(call) = shared.calls.get_mut(id).filter(|call| !call.is_settled()) else { return };
    if read_only {
        // A read has no `tool.started`, which counts the tries of other calls.
        call.tries += 1;
    }
    if (read_only || idempotent) && !has_drifted && call.tries < MAX_TRIES {
        call.state = CallState::Retry;
    } else if read_only {
        reopen_step(id, shared);
        record_script(id, Some(text), shared);
        settle(id, Settlement::Failed, &failed_text(text, 1), shared);
    } else {
        record_script(id, Some(text), shared);
        settle(id, Settlement::Indeterminate, text, shared);
    }
}

/// Takes the excerpt of an offloaded result. If the result is in the history, the excerpt replaces it there. Otherwise the excerpt
/// completes its call.
fn take_excerpt(id: &CallId, excerpt: &str, shared: &mut Shared) {
    if shared.history.offload(id, excerpt, &mut shared.budget) {
        shared.model.too_long = None;
    } else {
        complete(id, excerpt, shared);
    }
}

/// Withdraws the rulings on calls of changed tools: the gate rules again. A call with effect that waits for a retry is lost.
fn apply_drift(changed: &[String], missing: &[String], shared: &mut Shared) {
    shared.catalogue.add_drift(changed, missing);
    let drifted: Vec<(CallId, CallState, bool)> =
        shared.calls.all().iter().filter_map(|call| drifted_call(call, shared)).collect();
    for (id, state, read_only) in drifted {
        if state == CallState::Retry && !read_only {
            settle(&id, Settlement::Indeterminate, TOOL_CHANGED, shared);
        } else if let Some(call) = shared.calls.get_mut(&id) {
            call.state = CallState::Requested;
        }
    }
}

/// Returns the id and the state of a call, and whether its tool is read-only, if the tool has drifted and the call is
/// allowed or waits for a retry.
fn drifted_call(call: &Call, shared: &Shared) -> Option<(CallId, CallState, bool)> {
    let tool = shared.catalogue.tool(&call.tool)?;
    shared.catalogue.drift_of(&tool.name)?;
    matches!(call.state, CallState::Allowed | CallState::Retry).then(|| (call.id.clone(), call.state, tool.read_only))
}

fn tool_of<'a>(id: &CallId, shared: &'a Shared) -> Option<&'a CatalogueTool> {
    shared.catalogue.tool(&shared.calls.get(id)?.tool)
}

fn step_status(evidence: u64, not_applicable: bool) -> StepStatus {
    if not_applicable { StepStatus::NotApplicable { evidence } } else { StepStatus::Done { evidence } }
}

fn denied_text(reasons: &[RulingReason], tries: u32) -> String {
    let why = reasons.iter().map(|reason| format!("{} ({})", reason.detail, reason.layer)).collect::<Vec<_>>();
    let end =
        if tries == 0 { "The call was not made." } else { "Its answer was lost before, and it is not sent again." };
    format!("Denied: {}. {end}", why.join("; "))
}

fn skipped_text(because: &CallId) -> String {
    format!("Skipped: call {because} of the same answer was not completed. This call was not made.")
}

/// Appends a note to a result: the evidence number, which the model names when it closes a workflow step that is not a tool, or the
/// reason why the call does not complete its step.
fn with_note(text: &str, note: &str) -> String {
    format!("{text}\n[{note}]")
}
