//! Children: the calls of `use_skill` that invoke a Skill. Such a call waits until its child has ended.

use super::gate::{self, Gate};
use super::state::{Call, Child};
use crate::core_tools::use_skill::{Invocation, SkillUse, resolve};
use crate::event::{Arguments, CallId, ChildEnd, Event};
use crate::shared::Shared;
use bloomery_crds::canonical::{self, CanonicalJson};
use bloomery_crds::children::{ChildProgress, ChildRequest, ChildState, MAX_CHILDREN, VisibleSkill};
use bloomery_crds::v1alpha1::{ChildrenUsage, Limits, Verdict, whole_seconds};
use serde_json::{Value, json};

/// The longest duration of a child, in seconds. A Job can name no longer one as seconds.
const MAX_DURATION_SECONDS: u64 = 999_999;

/// Returns the request for the child of a call.
pub(super) fn request(call: &Call, skill: &str, limits: &Limits) -> Option<ChildRequest> {
    let Some(Arguments::Canonical(arguments)) = &call.arguments else { return None };
    let Invocation { goal, resources, .. } = invocation(call).ok()?;
    Some(ChildRequest {
        call: call.id.to_string(),
        digest: arguments.digest().clone(),
        skill: skill.to_owned(),
        goal,
        resources,
        limits: limits.clone(),
    })
}

fn invocation(call: &Call) -> Result<Invocation, String> {
    let arguments = call.read_arguments().map_err(|error| error.to_string())?;
    match SkillUse::read(arguments)? {
        SkillUse::Invoke(invocation) => Ok(invocation),
        SkillUse::List | SkillUse::Find(_) => Err("The call invokes no Skill.".to_owned()),
    }
}

/// Returns the events that start the child of a call under the name `job`, or the event of the call's failure.
pub(crate) fn start(call: &CallId, skills: &[VisibleSkill], job: String, shared: &Shared) -> Vec<Event> {
    let id = call.clone();
    match prepare(call, skills, shared) {
        Ok((skill, limits)) => {
            vec![Event::ToolStarted { call: id.clone() }, Event::ChildStarted { call: id, job, skill, limits }]
        }
        Err(text) => vec![Event::ToolFailed { call: id, text }],
    }
}

/// Returns the name of the Skill that a call invokes, and the limits of the child. An error is a sentence for the model.
fn prepare(id: &CallId, skills: &[VisibleSkill], shared: &Shared) -> Result<(String, Limits), String> {
    let call = shared.calls.get(id).ok_or("There is no such call.")?;
    let run = &shared.run;
    if !run.can_have_children {
        return Err("This Job can have no children.".to_owned());
    }
    if shared.calls.children() >= MAX_CHILDREN {
        return Err(format!("This Job has invoked {MAX_CHILDREN} Skills, which is the most. Do the rest yourself."));
    }
    let invocation = invocation(call)?;
    let skill = resolve(&run.skill, skills, &invocation.name)?;
    if skill.name != invocation.name && !is_allowed_by_name(call, &skill.name, shared) {
        return Err(format!("The name is that of the Skill {}. Invoke it by its exact name.", skill.name));
    }
    check_resources(&invocation.resources, skill, shared)?;
    Ok((skill.name.clone(), limits_of_child(&invocation.limits, shared)?))
}

/// Returns whether the gate also allows a call with the exact name of the Skill. The rules of the Skill may read the name, and a decision
/// of a person is about the name in the arguments.
fn is_allowed_by_name(call: &Call, name: &str, shared: &Shared) -> bool {
    let Ok(Value::Object(arguments)) = call.read_arguments() else { return false };
    let mut arguments = arguments.clone();
    arguments.insert("name".to_owned(), json!(name));
    let Ok(arguments) = CanonicalJson::parse(&canonical::object_to_string(&arguments)) else { return false };
    let renamed = Call { arguments: Some(Arguments::Canonical(arguments)), ..call.clone() };
    let gate = Gate::new(shared);
    // The call itself is among those that the gate has allowed.
    let before = Gate { allowed: gate.allowed.saturating_sub(1), ..gate };
    call.held.is_none() && gate::rule(&renamed, &before).verdict == Verdict::Allow
}

/// Checks that the Job has the resources that it passes, and passes those that the Skill needs.
fn check_resources(passed: &[String], skill: &VisibleSkill, shared: &Shared) -> Result<(), String> {
    let is_bound = |name: &&String| shared.run.resources.iter().any(|bound| bound.name == **name);
    if let Some(unbound) = passed.iter().find(|name| !is_bound(name)) {
        return Err(format!("You have no resource {unbound:?}, so you cannot pass it."));
    }
    let missing: Vec<&str> = skill.resources.iter().filter(|name| !passed.contains(name)).map(String::as_str).collect();
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("The Skill {} needs the resources {}: pass them in resources.", skill.name, missing.join(", ")))
}

/// Returns the limits of a child: those that the model asks for, or else half of what is left of the Job's. A child never gets more than
/// what is left.
fn limits_of_child(wanted: &Limits, shared: &Shared) -> Result<Limits, String> {
    let (limits, budget) = (&shared.run.limits, &shared.budget);
    let left = |limit: &str, all: u64, spent: u64, wanted: Option<u64>| match all.saturating_sub(spent) {
        0 => Err(format!("Nothing of limits.{limit} is left for a child.")),
        left => Ok(wanted.unwrap_or(left.div_ceil(2)).clamp(1, left)),
    };
    let steps = left("steps", limits.steps.into(), budget.steps().into(), wanted.steps.map(u64::from))?;
    let calls = Gate::new(shared).allowed;
    let tool_calls = left("toolCalls", limits.tool_calls.into(), calls.into(), wanted.tool_calls.map(u64::from))?;
    let tokens = left("tokens", limits.tokens, budget.tokens(), wanted.tokens)?;
    let spent_seconds = budget.spent_ms() / 1000;
    let seconds =
        left("duration", limits.duration_seconds, spent_seconds, wanted.duration.as_ref().map(whole_seconds))?;
    Ok(Limits {
        steps: u32::try_from(steps).ok(),
        tool_calls: u32::try_from(tool_calls).ok(),
        tokens: Some(tokens),
        duration: format!("{}s", seconds.min(MAX_DURATION_SECONDS)).parse().ok(),
    })
}

/// Returns the event that the state of a child causes; none if the child has not ended.
pub fn event_of(state: ChildState) -> Option<Event> {
    let (call, job) = (CallId(state.call), state.job);
    match state.state {
        ChildProgress::Running => None,
        ChildProgress::Ended { code, message, text, fields, usage } => {
            Some(Event::ChildCompleted { call, end: ChildEnd { code, message, text, fields, usage } })
        }
        ChildProgress::Refused { reason } => Some(Event::ToolFailed { call, text: reason }),
        ChildProgress::Deleted => {
            let text = format!("the Job {job} of the invoked Skill was deleted before it ended");
            Some(Event::ToolIndeterminate { call, text })
        }
    }
}

/// Takes the start of a child: its limits are reserved. A worker starts a child only of a call that it has started.
pub(super) fn take_start(id: &CallId, job: &str, skill: &str, limits: &Limits, shared: &mut Shared) {
    let is_startable =
        |call: &Call| call.child.is_none() && shared.is_effect_under_way(call) && shared.is_invocation(call);
    if !shared.calls.get(id).is_some_and(is_startable) {
        return;
    }
    shared.calls.count_child();
    shared.budget.reserve_child(ChildrenUsage {
        steps: limits.steps.unwrap_or_default(),
        tool_calls: limits.tool_calls.unwrap_or_default(),
        tokens: limits.tokens.unwrap_or_default(),
        seconds: limits.duration.as_ref().map(whole_seconds).unwrap_or_default(),
    });
    if let Some(call) = shared.calls.get_mut(id) {
        call.child = Some(Child::Open { job: job.to_owned(), skill: skill.to_owned(), limits: limits.clone() });
    }
}

/// Takes the end of the child of a call. Its usage counts for the Job, and the rest of its limits is free again.
pub(super) fn take_end(id: &CallId, end: &ChildEnd, shared: &mut Shared) {
    let Some(call) = shared.calls.get_mut(id) else { return };
    let Some(Child::Open { job, skill, .. }) = &call.child else { return };
    let text = result_text(job, skill, end);
    call.child = Some(Child::Ended { text });
    shared.budget.settle_child(&end.usage.with_children());
}

/// Takes the failure of a call: its child was not created, and has consumed nothing.
pub(super) fn take_failure(id: &CallId, shared: &mut Shared) {
    if close(id, shared) {
        shared.budget.settle_child(&ChildrenUsage::default());
    }
}

/// Takes the loss of a call: its child may have consumed all of its limits.
pub(super) fn take_loss(id: &CallId, shared: &mut Shared) {
    if close(id, shared) {
        shared.budget.forfeit_child();
    }
}

/// Removes the open child of a call. Returns whether there was one.
fn close(id: &CallId, shared: &mut Shared) -> bool {
    let has_open_child = |call: &&mut Call| matches!(call.child, Some(Child::Open { .. }));
    let Some(call) = shared.calls.get_mut(id).filter(has_open_child) else { return false };
    call.child = None;
    true
}

/// Returns the result of a call whose child has ended. It is data for the model, whether the child has succeeded or not.
fn result_text(job: &str, skill: &str, end: &ChildEnd) -> String {
    let ChildEnd { code, message, text, fields, usage } = end;
    let spent = usage.with_children();
    canonical::to_string(&json!({
        "job": job, "skill": skill, "outcome": code, "message": message, "text": text, "fields": fields, "usage": spent,
    }))
}
