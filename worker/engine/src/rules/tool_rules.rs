//! What a Skill says of the calls of one tool: `tools[].policy` and `policy.approvals`.

use crate::condition::{self, Arguments, Condition};
use crate::rules::objection::Objection;
use crate::tool::CatalogueTool;
use bloomery_crds::v1alpha1::{CallPolicy, GateReason, SkillSpec, When};
use std::cell::LazyCell;

/// The rules of one tool, compiled.
#[derive(Debug, Default)]
pub(super) struct ToolRules {
    allowed: Option<When>,
    requires_approval: Option<When>,
    condition: Option<Written>,
    approvals: Vec<Approval>,
    optional: Vec<String>,
}

#[derive(Debug)]
struct Approval {
    when: Option<Written>,
    approver: Option<String>,
}

/// A condition as the Skill has it: what people read of it is its text, whether it can be compiled or not.
#[derive(Debug)]
struct Written {
    text: String,
    compiled: Result<Condition, condition::Error>,
}

impl Written {
    fn new(text: &str) -> Self {
        Self { text: text.to_owned(), compiled: Condition::compile(text) }
    }

    /// Whether it holds for a call, or a sentence why nobody can tell.
    fn decide(&self, arguments: &Result<Arguments<'_>, condition::Error>, optional: &[String]) -> Result<bool, String> {
        let decided = match (&self.compiled, arguments) {
            (Ok(condition), Ok(arguments)) => condition.decide(*arguments, optional),
            (Err(fault), _) | (_, Err(fault)) => Err(fault.clone()),
        };
        decided.map_err(|fault| format!("the condition {:?} gives no answer: {fault}", self.text))
    }
}

impl ToolRules {
    pub(super) fn compile(skill: &SkillSpec, tool: &CatalogueTool) -> Self {
        let declared = skill.tools.iter().find(|declared| declared.name == tool.name);
        let policy: CallPolicy = declared.and_then(|declared| declared.policy.clone()).unwrap_or_default();
        let approvals = skill.policy.iter().flat_map(|policy| &policy.approvals);
        let approvals = approvals
            .filter(|rule| rule.tool_id == tool.name)
            .map(|rule| Approval { when: rule.when.as_deref().map(Written::new), approver: rule.approver.clone() });
        Self {
            allowed: policy.allowed,
            requires_approval: policy.requires_approval,
            condition: policy.condition.as_deref().map(Written::new),
            approvals: approvals.collect(),
            optional: tool.optional(),
        }
    }

    /// The conditions that cannot be compiled, and why.
    pub(super) fn faults(&self) -> impl Iterator<Item = &condition::Error> {
        let conditions = self.condition.iter().chain(self.approvals.iter().filter_map(|rule| rule.when.as_ref()));
        conditions.filter_map(|condition| condition.compiled.as_ref().err())
    }

    /// `tools[].policy`: a `conditional` that cannot be decided does not allow, and does hold.
    pub(super) fn policy(&self, arguments: &Result<Arguments<'_>, condition::Error>, approver: &str) -> Vec<Objection> {
        let deny = |detail: String| Objection::deny(GateReason::ToolPolicy, detail);
        let hold = |detail: String| Objection::hold(GateReason::ToolPolicy, detail, approver);
        let text = self.condition.as_ref().map_or("", |condition| condition.text.as_str());
        // Both parts may hang on it, and neither has to.
        let decided = LazyCell::new(|| match &self.condition {
            Some(condition) => condition.decide(arguments, &self.optional),
            None => Err("the Skill's policy of this tool says conditional, and has no condition".to_owned()),
        });
        let mut objections = Vec::new();
        match self.allowed {
            Some(When::Never) => objections.push(deny("the Skill's policy of this tool allows no call".to_owned())),
            Some(When::Conditional) => match &*decided {
                Ok(true) => {}
                Ok(false) => objections.push(deny(format!("the Skill allows this tool only if {text}"))),
                Err(why) => objections.push(deny(why.clone())),
            },
            Some(When::Always) | None => {}
        }
        match self.requires_approval {
            Some(When::Always) => objections.push(hold("every call of this tool needs approval".to_owned())),
            Some(When::Conditional) => match &*decided {
                Ok(false) => {}
                Ok(true) => objections.push(hold(format!("{text} needs approval"))),
                Err(why) => objections.push(hold(why.clone())),
            },
            Some(When::Never) | None => {}
        }
        objections
    }

    /// `policy.approvals`: a condition that cannot be decided holds.
    pub(super) fn approvals(
        &self,
        arguments: &Result<Arguments<'_>, condition::Error>,
        approver: &str,
    ) -> Vec<Objection> {
        let objection = |rule: &Approval| {
            let detail = match &rule.when {
                None => "every call needs approval".to_owned(),
                Some(when) => match when.decide(arguments, &self.optional) {
                    Ok(false) => return None,
                    Ok(true) => format!("{} needs approval", when.text),
                    Err(why) => why,
                },
            };
            Some(Objection::hold(GateReason::Approval, detail, rule.approver.as_deref().unwrap_or(approver)))
        };
        self.approvals.iter().filter_map(objection).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::fixture;
    use crate::run::Run;
    use bloomery_crds::v1alpha1::Verdict;
    use rstest::rstest;
    use serde_json::json;

    /// What `tools[].policy` says of a refund of 600, where both of its parts hang on one condition.
    fn said(condition: Option<&str>) -> Vec<(Verdict, String)> {
        let mut skill = fixture::skill();
        let policy = json!({"allowed": "conditional", "requiresApproval": "conditional", "condition": condition});
        skill.tools[2].policy = serde_json::from_value(policy).unwrap();
        let tools = catalogue::fix(&Run { skill: skill.clone(), ..fixture::run() }, fixture::listed());
        let refund = tools.iter().find(|tool| tool.name == skill.tools[2].name).unwrap();
        let arguments = json!({"order_id": "A-17", "amount": 600});
        let objections = ToolRules::compile(&skill, refund).policy(&Arguments::check(&arguments), "lead");
        objections.into_iter().map(|objection| (objection.verdict, objection.reason.detail)).collect()
    }

    #[rstest]
    #[case::true_for_this_call("amount > 500", &[(Verdict::Hold, "amount > 500 needs approval")])]
    #[case::false_for_this_call("amount < 500", &[(Verdict::Deny, "the Skill allows this tool only if amount < 500")])]
    #[case::undecided("note == 'x'", &[
        (Verdict::Deny, "the condition \"note == 'x'\" gives no answer: the call has no argument \"note\""),
        (Verdict::Hold, "the condition \"note == 'x'\" gives no answer: the call has no argument \"note\""),
    ])]
    #[case::not_compiled("pay(amount)", &[
        (Verdict::Deny, "the condition \"pay(amount)\" gives no answer: there is no function pay(): "),
        (Verdict::Hold, "the condition \"pay(amount)\" gives no answer: there is no function pay(): "),
    ])]
    fn both_parts_of_a_policy_say_the_condition_as_it_is_written(
        #[case] condition: &str,
        #[case] expected: &[(Verdict, &str)],
    ) {
        let said = said(Some(condition));
        assert_eq!(said.len(), expected.len(), "{said:?}");
        for ((verdict, detail), (expected_verdict, beginning)) in said.iter().zip(expected) {
            assert_eq!(verdict, expected_verdict);
            assert!(detail.starts_with(beginning), "{detail}");
        }
    }

    #[test]
    fn a_policy_without_its_condition_does_not_allow_and_does_hold() {
        let why = "the Skill's policy of this tool says conditional, and has no condition".to_owned();
        assert_eq!(said(None), [(Verdict::Deny, why.clone()), (Verdict::Hold, why)]);
    }
}
