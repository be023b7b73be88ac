//! `policy.limits`: limits on the number of calls, and on the sum of an argument over calls.

mod amount;
mod spent;

pub use amount::Amount;
pub use spent::Spent;

use super::objection::Objection;
use crate::core_tools;
use crate::event::CallId;
use bloomery_crds::tool_pattern::matches;
use bloomery_crds::v1alpha1::{ApprovalAction, CallLimit, GateReason, Policy};
use serde_json::Value;

/// The limits of a Skill.
#[derive(Debug, Default)]
pub(super) struct Limits(Vec<CallLimit>);

impl Limits {
    pub(super) fn new(policy: &Policy) -> Self {
        Self(policy.limits.clone())
    }

    /// Returns the amount of a call for each limit that it counts towards, by the position of the limit. A call without a valid amount
    /// is started only if a person has approved it. It adds nothing to a sum.
    pub(super) fn amounts(&self, tool: &str, arguments: &Value) -> Vec<(usize, Amount)> {
        let of_limit = |(at, limit): (usize, &CallLimit)| (at, amount(limit, arguments).unwrap_or_default());
        self.of_tool(tool).map(of_limit).collect()
    }

    /// Returns an objection for each limit that a call would exceed, together with the calls that count. `approver` decides if a
    /// limit names none.
    pub(super) fn objections(
        &self,
        tool: &str,
        arguments: &Value,
        call: &CallId,
        spent: &Spent,
        approver: &str,
    ) -> Vec<Objection> {
        let objection = |(at, limit): (usize, &CallLimit)| {
            let fault = fault(limit, amount(limit, arguments), spent.by_others(at, call))?;
            Some(object(limit, fault, approver).of_rule(format!("policy.limits[{at}]")))
        };
        self.of_tool(tool).filter_map(objection).collect()
    }

    /// Returns the limits on a tool. The tools with a reserved name act only on the conversation.
    fn of_tool(&self, tool: &str) -> impl Iterator<Item = (usize, &CallLimit)> {
        let limits = self.0.iter().enumerate();
        limits.filter(move |(_, limit)| !core_tools::is_reserved(tool) && matches(&limit.tool, tool))
    }
}

/// Returns the amount of a call for a limit. `None` if the arguments have none.
fn amount(limit: &CallLimit, arguments: &Value) -> Option<Amount> {
    match &limit.sum {
        Some(argument) => Amount::of_value(arguments.get(argument)),
        None => Some(Amount::ONE),
    }
}

/// Returns the reason why a call exceeds a limit. `others` is what other calls have spent.
fn fault(limit: &CallLimit, amount: Option<Amount>, others: Amount) -> Option<String> {
    let scope = "in this Job";
    let what = limit.sum.as_deref().unwrap_or("calls");
    let Some(amount) = amount else {
        return Some(format!(
            "{what} is limited {scope}, so it must be a number of at least 0, with at most 18 decimals"
        ));
    };
    let sum = others.plus(amount);
    let max = &limit.max;
    let Some(most) = Amount::of_number(max) else {
        return Some(format!("the limit {max} of {what} {scope} cannot be used"));
    };
    (sum > most).then(|| format!("{what} {scope}: {others} before, {sum} with this call, at most {most}"))
}

fn object(limit: &CallLimit, fault: String, approver: &str) -> Objection {
    let detail = match &limit.reason {
        Some(reason) => format!("{reason} ({fault})"),
        None => fault,
    };
    match limit.action {
        Some(ApprovalAction::Deny) => Objection::deny(GateReason::Approval, detail),
        Some(ApprovalAction::RequireApproval) | None => {
            Objection::hold(GateReason::Approval, detail, limit.approver.as_deref().unwrap_or(approver))
        }
    }
}

#[cfg(test)]
mod tests;
