//! `policy.limits`: limits on the number of calls, and on the sum of an argument over calls.

mod ledger;
mod spent;

pub use ledger::{Ledger, LedgerEntry, MAX_ENTRIES, Reservation};
pub use spent::Spent;

use super::objection::Objection;
use crate::amount::Amount;
use crate::core_tools;
use crate::event::{CallId, ReservationAnswer};
use bloomery_crds::Digest;
use bloomery_crds::tool_pattern::matches;
use bloomery_crds::v1alpha1::{ApprovalAction, CallLimit, GateReason, LimitScope, Policy, whole_seconds};
use ledger::WindowLimit;
use serde_json::Value;

/// The limits of a Skill.
#[derive(Debug, Default)]
pub(super) struct Limits(Vec<CallLimit>);

/// The calls that count, from which the limits decide about a call.
#[derive(Debug, Clone, Copy)]
pub struct Counted<'a> {
    /// The id of the call.
    pub call: &'a CallId,
    /// The calls of the Job.
    pub spent: &'a Spent,
    /// The answer of the ledger of the Skill. None before it was asked.
    pub answer: Option<&'a ReservationAnswer>,
}

/// Returns the reservation of a call for the limits of a policy that have a window. `None` if none applies.
pub fn reservation_of<'a>(
    policy: &Policy,
    tool: &'a str,
    arguments: &Value,
    call: &'a CallId,
    key: Digest,
) -> Option<Reservation<'a>> {
    Limits::new(policy).reservation(tool, arguments, call, key)
}

impl Limits {
    pub(super) fn new(policy: &Policy) -> Self {
        Self(policy.limits.clone())
    }

    /// Returns the amount of a call for each limit of the Job that it counts towards, by the position of the limit. A call without a valid
    /// amount is started only if a person has approved it. It adds nothing to a sum.
    pub(super) fn amounts(&self, tool: &str, arguments: &Value) -> Vec<(usize, Amount)> {
        let of_limit = |(at, limit): (usize, &CallLimit)| (at, amount(limit, arguments).unwrap_or_default());
        self.of_tool(tool).filter(|(_, limit)| limit.per == LimitScope::Job).map(of_limit).collect()
    }

    /// Returns the reservation of a call in the ledger of the Skill. `None` if no limit needs it.
    pub(super) fn reservation<'a>(
        &self,
        tool: &'a str,
        arguments: &Value,
        call: &'a CallId,
        key: Digest,
    ) -> Option<Reservation<'a>> {
        let of_skill: Vec<_> = self.of_tool(tool).filter(|(_, limit)| limit.per == LimitScope::Skill).collect();
        let limit = |(at, limit): &(usize, &CallLimit)| WindowLimit {
            at: *at,
            tool: limit.tool.clone(),
            sum: limit.sum.clone(),
            window_seconds: limit.window.as_ref().map_or(u64::MAX, whole_seconds),
            max: Amount::of_number(&limit.max),
        };
        let amounts = of_skill
            .iter()
            .filter_map(|(_, limit)| Some((limit.sum.clone()?, amount(limit, arguments).unwrap_or_default())));
        (!of_skill.is_empty()).then(|| Reservation {
            call,
            key,
            tool,
            amounts: amounts.collect(),
            limits: of_skill.iter().map(limit).collect(),
            forced: false,
        })
    }

    /// Returns whether the ledger of the Skill must count the calls of a tool.
    pub(super) fn need_ledger(&self, tool: &str) -> bool {
        self.of_tool(tool).any(|(_, limit)| limit.per == LimitScope::Skill)
    }

    /// Returns an objection for each limit that a call would exceed, together with the calls that count.
    pub(super) fn objections(&self, tool: &str, arguments: &Value, counted: Counted<'_>) -> Vec<Objection> {
        let objection = |(at, limit): (usize, &CallLimit)| {
            let fault = fault(at, limit, amount(limit, arguments), counted)?;
            Some(object(limit, fault).of_rule(format!("policy.limits[{at}]")))
        };
        self.of_tool(tool).filter_map(objection).collect()
    }

    /// Returns the limits on a tool. Tools that act only on the conversation have none.
    fn of_tool(&self, tool: &str) -> impl Iterator<Item = (usize, &CallLimit)> {
        let limits = self.0.iter().enumerate();
        limits.filter(move |(_, limit)| !core_tools::acts_on_conversation(tool) && matches(&limit.tool, tool))
    }
}

/// Returns the amount of a call for a limit. `None` if the arguments have none.
fn amount(limit: &CallLimit, arguments: &Value) -> Option<Amount> {
    match &limit.sum {
        Some(argument) => Amount::of_value(arguments.get(argument)),
        None => Some(Amount::ONE),
    }
}

/// Returns the reason why a call exceeds the limit at a position.
fn fault(at: usize, limit: &CallLimit, amount: Option<Amount>, counted: Counted<'_>) -> Option<String> {
    let scope = match (limit.per, &limit.window) {
        (LimitScope::Job, _) => "in this Job".to_owned(),
        (LimitScope::Skill, Some(window)) => format!("in {}", duration(whole_seconds(window))),
        (LimitScope::Skill, None) => "of all Jobs".to_owned(),
    };
    let what = limit.sum.as_deref().unwrap_or("calls");
    let Some(amount) = amount else {
        return Some(format!(
            "{what} is limited {scope}, so it must be a number of at least 0, with at most 18 decimals"
        ));
    };
    let others = match limit.per {
        LimitScope::Job => counted.spent.by_others(at, counted.call),
        LimitScope::Skill => match counted.answer? {
            ReservationAnswer { fault: Some(fault), .. } => {
                return Some(format!("{what} {scope} cannot be checked, because of the ledger of the Skill: {fault}"));
            }
            // It was within the limits when it was reserved.
            ReservationAnswer { reserved: true, forced: false, .. } => return None,
            answer => answer.used.iter().find(|used| used.limit == at).map(|used| used.used).unwrap_or_default(),
        },
    };
    let sum = others.plus(amount);
    let max = &limit.max;
    let Some(most) = Amount::of_number(max) else {
        return Some(format!("the limit {max} of {what} {scope} cannot be used"));
    };
    (sum > most).then(|| format!("{what} {scope}: {others} before, {sum} with this call, at most {most}"))
}

/// Returns a duration in the largest unit that is exact.
fn duration(seconds: u64) -> String {
    match seconds {
        _ if seconds.is_multiple_of(3600) => format!("{} h", seconds / 3600),
        _ if seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        _ => format!("{seconds} s"),
    }
}

fn object(limit: &CallLimit, fault: String) -> Objection {
    let detail = match &limit.reason {
        Some(reason) => format!("{reason} ({fault})"),
        None => fault,
    };
    match limit.action {
        Some(ApprovalAction::Deny) => Objection::deny(GateReason::Approval, detail),
        Some(ApprovalAction::RequireApproval) | None => {
            Objection::hold(GateReason::Approval, detail, limit.approver.as_deref())
        }
    }
}

#[cfg(test)]
mod tests;
