//! The rules of a Skill about one tool: `tools[].policy` and `policy.approvals`.

use crate::condition::{self, Condition, Subject};
use crate::core_tools::use_skill;
use crate::rules::objection::Objection;
use crate::tool::CatalogueTool;
use bloomery_crds::tool_pattern::matches;
use bloomery_crds::v1alpha1::{ApprovalAction, CallPolicy, EffectPolicy, GateReason, SkillSpec, When};
use serde_json::Value;
use std::cell::LazyCell;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The compiled rules of one tool.
#[derive(Debug, Default)]
pub(super) struct ToolRules {
    /// The policy of each declaration whose name matches the tool.
    policies: Vec<Policy>,
    approvals: Vec<ApprovalRule>,
    /// The arguments that the tool's schema does not require. If a condition fails because one is missing, the error says that it is
    /// optional.
    optional: Vec<String>,
    /// The arguments that reach a place outside although the tool is read-only.
    sends: Vec<String>,
}

/// A compiled `tools[].policy`.
#[derive(Debug)]
struct Policy {
    allowed: Option<When>,
    requires_approval: Option<When>,
    condition: Option<Arc<WrittenCondition>>,
    reason: Option<String>,
}

#[derive(Debug)]
struct ApprovalRule {
    when: Applies,
    action: ApprovalAction,
    approver: Option<String>,
    reason: Option<String>,
}

/// The calls to which an approval rule applies.
#[derive(Debug)]
enum Applies {
    /// Every call.
    Always,
    /// The calls for which a condition is true.
    When(Arc<WrittenCondition>),
    /// The calls with a value, in one of these arguments, that people did not write.
    Sending(Vec<String>),
}

/// A condition with its text, which messages quote.
#[derive(Debug)]
struct WrittenCondition {
    text: String,
    compiled: Result<Condition, condition::Error>,
}

/// The conditions of a Skill, each compiled once. The rule of a prefix of names is a rule of many tools.
#[derive(Default)]
pub(super) struct Conditions<'a>(BTreeMap<&'a str, Arc<WrittenCondition>>);

impl<'a> Conditions<'a> {
    fn get(&mut self, text: &'a str) -> Arc<WrittenCondition> {
        let compiled = self.0.entry(text).or_insert_with(|| Arc::new(WrittenCondition::new(text)));
        Arc::clone(compiled)
    }
}

impl WrittenCondition {
    fn new(text: &str) -> Self {
        Self { text: text.to_owned(), compiled: Condition::compile(text) }
    }

    /// Returns whether the condition is true for a call. `optional` are the arguments that the tool's schema does not require.
    fn decide(&self, subject: Subject<'_>, optional: &[String]) -> Result<bool, condition::Error> {
        match (&self.compiled, subject.arguments) {
            (Ok(condition), Ok(arguments)) => condition.decide(*arguments, optional, subject.facts),
            (Err(error), _) | (_, Err(error)) => Err(error.clone()),
        }
    }
}

/// Returns the paths of the rules in `tools[].policy` and `policy.approvals` that replace the default of `policy.effects` for a tool: they
/// have its full name, and let calls pass or hold them. A rule that denies needs no exception from the default.
pub(crate) fn naming_rules(skill: &SkillSpec, tool: &str) -> impl Iterator<Item = String> {
    let declared = skill.tools.iter().enumerate().filter(move |(_, declared)| {
        declared.name == tool && declared.policy.as_ref().is_some_and(CallPolicy::decides)
    });
    let approvals = skill.policy.iter().flat_map(|policy| &policy.approvals).enumerate();
    let approvals =
        approvals.filter(move |(_, rule)| rule.tool_id == tool && rule.action != Some(ApprovalAction::Deny));
    let declared = declared.map(|(at, _)| format!("spec.tools[{at}].policy"));
    declared.chain(approvals.map(|(at, _)| format!("spec.policy.approvals[{at}]")))
}

impl ToolRules {
    pub(super) fn compile<'a>(skill: &'a SkillSpec, tool: &CatalogueTool, conditions: &mut Conditions<'a>) -> Self {
        let policies = skill.declarations_of(&tool.name).filter_map(|declared| declared.policy.as_ref());
        let approvals = skill.policy.iter().flat_map(|policy| &policy.approvals);
        let policies = policies.map(|policy| Policy::compile(policy, conditions)).collect();
        let approvals = approvals.filter(|rule| matches(&rule.tool_id, &tool.name)).map(|rule| ApprovalRule {
            when: rule.when.as_deref().map_or(Applies::Always, |when| Applies::When(conditions.get(when))),
            action: rule.action.unwrap_or(ApprovalAction::RequireApproval),
            approver: rule.approver.clone(),
            reason: rule.reason.clone(),
        });
        Self {
            policies,
            approvals: approvals.collect(),
            optional: tool.optional_arguments(),
            sends: skill.declarations_of(&tool.name).flat_map(|declared| declared.sends.clone()).collect(),
        }
    }

    /// Adds the rule of `policy.effects` to a tool that no rule names, if its calls may have an effect.
    pub(super) fn or_default(
        mut self,
        tool: &CatalogueTool,
        effects: Option<EffectPolicy>,
        conditions: &mut Conditions<'_>,
    ) -> Self {
        let (action, consequence) = match effects {
            Some(EffectPolicy::RequireApproval) => (ApprovalAction::RequireApproval, "its calls need approval"),
            Some(EffectPolicy::Deny) => (ApprovalAction::Deny, "its calls are denied"),
            Some(EffectPolicy::Allow) | None => return self,
        };
        let (when, why) = match (tool.read_only, self.sends.is_empty()) {
            (false, _) => {
                let is_use_skill = use_skill::is_use_skill(tool);
                let when =
                    if is_use_skill { Applies::When(conditions.get(use_skill::INVOKES)) } else { Applies::Always };
                (when, "no rule has the name of this tool".to_owned())
            }
            (true, false) => {
                let sends = std::mem::take(&mut self.sends);
                let why =
                    format!("no rule has the name of this tool, and nobody wrote what it sends ({})", sends.join(", "));
                (Applies::Sending(sends), why)
            }
            (true, true) => return self,
        };
        let reason = Some(format!("{why}: by policy.effects, {consequence}"));
        self.approvals.push(ApprovalRule { when, action, approver: None, reason });
        self
    }

    /// Returns the errors of conditions that cannot be compiled.
    pub(super) fn errors(&self) -> impl Iterator<Item = &condition::Error> {
        let of_policies = self.policies.iter().filter_map(|policy| policy.condition.as_deref());
        let conditions = of_policies.chain(self.approvals.iter().filter_map(|rule| match &rule.when {
            Applies::When(condition) => Some(condition.as_ref()),
            Applies::Always | Applies::Sending(_) => None,
        }));
        conditions.filter_map(|condition| condition.compiled.as_ref().err())
    }

    /// Returns the objections of `tools[].policy` to a call. If the condition has no result, `allowed` denies the call and
    /// `requiresApproval` holds it.
    pub(super) fn policy_objections(&self, subject: Subject<'_>) -> Vec<Objection> {
        self.policies.iter().flat_map(|policy| policy.objections(subject, &self.optional)).collect()
    }

    /// Returns the objections of `policy.approvals` to a call. If a condition has no result, the rule applies.
    pub(super) fn approval_objections(&self, subject: Subject<'_>) -> Vec<Objection> {
        let objection = |rule: &ApprovalRule| {
            let detail = rule.reason(subject, &self.optional)?;
            Some(match rule.action {
                ApprovalAction::RequireApproval => {
                    Objection::hold(GateReason::Approval, detail, rule.approver.as_deref())
                }
                ApprovalAction::Deny => Objection::deny(GateReason::Approval, detail),
            })
        };
        self.approvals.iter().filter_map(objection).collect()
    }
}

impl Policy {
    fn compile<'a>(policy: &'a CallPolicy, conditions: &mut Conditions<'a>) -> Self {
        Self {
            allowed: policy.allowed,
            requires_approval: policy.requires_approval,
            condition: policy.condition.as_deref().map(|text| conditions.get(text)),
            reason: policy.reason.clone(),
        }
    }

    /// Returns the objections of this policy to a call.
    fn objections(&self, subject: Subject<'_>, optional: &[String]) -> Vec<Objection> {
        let detail = |detail: String| self.reason.clone().unwrap_or(detail);
        let deny = |why: String| Objection::deny(GateReason::ToolPolicy, why);
        let hold = |why: String| Objection::hold(GateReason::ToolPolicy, why, None);
        let text = self.condition.as_ref().map_or("", |condition| condition.text.as_str());
        // Evaluated at most once: both parts of the policy may use it.
        let decided = LazyCell::new(|| {
            let missing = || "the tool's policy is conditional, but has no condition".to_owned();
            let condition = self.condition.as_ref().ok_or_else(missing)?;
            let decided = condition.decide(subject, optional);
            decided.map_err(|error| condition::without_result(&condition.text, self.reason.as_deref(), &error))
        });
        let mut objections = Vec::new();
        match self.allowed {
            Some(When::Never) => objections.push(deny(detail("the tool's policy allows no call".to_owned()))),
            Some(When::Conditional) => match &*decided {
                Ok(true) => {}
                Ok(false) => objections.push(deny(detail(format!("the Skill allows this tool only if {text}")))),
                Err(why) => objections.push(deny(why.clone())),
            },
            Some(When::Always) | None => {}
        }
        match self.requires_approval {
            Some(When::Always) => objections.push(hold(detail("every call of this tool needs approval".to_owned()))),
            Some(When::Conditional) => match &*decided {
                Ok(false) => {}
                Ok(true) => objections.push(hold(detail(format!("{text} needs approval")))),
                Err(why) => objections.push(hold(why.clone())),
            },
            Some(When::Never) | None => {}
        }
        objections
    }
}

impl ApprovalRule {
    /// Returns the reason why the rule applies to a call, or nothing. If its condition has no result, the rule applies.
    fn reason(&self, subject: Subject<'_>, optional: &[String]) -> Option<String> {
        let consequence = match self.action {
            ApprovalAction::RequireApproval => "needs approval",
            ApprovalAction::Deny => "is denied",
        };
        let detail = |which: &str| self.reason.clone().unwrap_or_else(|| format!("{which} {consequence}"));
        let condition = match &self.when {
            Applies::Always => return Some(detail("every call")),
            Applies::Sending(names) => return sends_unwritten(names, subject).then(|| detail("every call")),
            Applies::When(condition) => condition,
        };
        match condition.decide(subject, optional) {
            Ok(false) => None,
            Ok(true) => Some(detail(&condition.text)),
            Err(error) => Some(condition::without_result(&condition.text, self.reason.as_deref(), &error)),
        }
    }
}

/// Returns whether one of the named arguments has a value that people did not write. Arguments that cannot be read may have one.
fn sends_unwritten(names: &[String], subject: Subject<'_>) -> bool {
    let Ok(arguments) = subject.arguments else { return true };
    let mut unread: Vec<&Value> = names.iter().filter_map(|name| arguments.get(name)).collect();
    while let Some(value) = unread.pop() {
        let is_written = match value {
            Value::Null | Value::Bool(_) => true,
            Value::String(_) | Value::Number(_) => {
                bloomery_cel::token_text(value).is_some_and(|text| text.is_empty() || subject.facts.is_from_user(&text))
            }
            Value::Array(items) => {
                unread.extend(items);
                true
            }
            // The names of fields are chosen by the model, too.
            Value::Object(fields) => fields.is_empty(),
        };
        if !is_written {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue;
    use crate::condition::{Arguments, NoFacts};
    use crate::fixture;
    use crate::run::Run;
    use bloomery_crds::v1alpha1::Verdict;
    use rstest::rstest;
    use serde_json::json;

    fn of_arguments<'a>(arguments: &'a Result<Arguments<'a>, condition::Error>) -> Subject<'a> {
        Subject { arguments, facts: &NoFacts }
    }

    /// Returns the rules about `process_refund` for a policy of the tool and the rules of `policy.approvals`.
    fn rules(policy: serde_json::Value, approvals: serde_json::Value) -> ToolRules {
        let mut skill = fixture::skill();
        skill.tools[2].policy = serde_json::from_value(policy).unwrap();
        skill.policy.as_mut().unwrap().approvals = serde_json::from_value(approvals).unwrap();
        let tools = catalogue::fix(&Run { skill: skill.clone(), ..fixture::run() }, fixture::listed());
        let refund = tools.iter().find(|tool| tool.name == skill.tools[2].name).unwrap();
        ToolRules::compile(&skill, refund, &mut Conditions::default())
    }

    /// Returns the objections of `tools[].policy` to a refund of 600. Both parts of the policy depend on the condition.
    fn objections(condition: Option<&str>) -> Vec<(Verdict, String)> {
        let policy = json!({"allowed": "conditional", "requiresApproval": "conditional", "condition": condition});
        let arguments = json!({"order_id": "A-17", "amount": 600});
        let objections = rules(policy, json!([])).policy_objections(of_arguments(&Arguments::check(&arguments)));
        objections.into_iter().map(|objection| (objection.verdict, objection.reason.detail)).collect()
    }

    #[rstest]
    #[case::held(json!({"reason": "Large refunds need a second pair of eyes"}), "Large refunds need a second pair of eyes")]
    #[case::denied(json!({"reason": "Too much", "action": "deny"}), "Too much")]
    #[case::without_reason(json!({"action": "deny"}), "amount > 500 is denied")]
    #[case::without_result(
        json!({"reason": "Too much", "when": "note == 'x'"}),
        "Too much (the condition of this rule has no result: the call has no argument \"note\")"
    )]
    #[case::without_reason_and_result(
        json!({"when": "note == 'x'"}), "the condition \"note == 'x'\" has no result: the call has no argument \"note\""
    )]
    fn a_rule_is_explained_by_its_reason(#[case] more: serde_json::Value, #[case] detail: &str) {
        let mut rule = json!({"toolId": "process_*", "when": "amount > 500"});
        rule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let arguments = json!({"order_id": "A-17", "amount": 600});
        let objections =
            rules(json!({}), json!([rule])).approval_objections(of_arguments(&Arguments::check(&arguments)));
        let details: Vec<String> = objections.into_iter().map(|objection| objection.reason.detail).collect();
        assert_eq!(details, [detail]);
    }

    #[test]
    fn the_policies_of_all_matching_declarations_apply() {
        let mut skill = fixture::skill();
        skill.tools = serde_json::from_value(json!([
            {"name": "*", "policy": {"requiresApproval": "always", "reason": "Everything"}},
            {"name": "process_*", "policy": {"allowed": "conditional", "condition": "amount < 500", "reason": "Too much"}},
            {"name": "process_refund"},
        ]))
        .unwrap();
        let tools = catalogue::fix(&Run { skill: skill.clone(), ..fixture::run() }, fixture::listed());
        let arguments = json!({"order_id": "A-17", "amount": 600});
        let details = |name: &str| -> Vec<String> {
            let tool = tools.iter().find(|tool| tool.name == name).unwrap();
            let objections = ToolRules::compile(&skill, tool, &mut Conditions::default())
                .policy_objections(of_arguments(&Arguments::check(&arguments)));
            objections.into_iter().map(|objection| objection.reason.detail).collect()
        };
        assert_eq!(details("process_refund"), ["Everything", "Too much"]);
        assert_eq!(details("note"), ["Everything"]);
    }

    #[rstest]
    #[case::true_for_this_call("amount > 500", &[(Verdict::Hold, "amount > 500 needs approval")])]
    #[case::false_for_this_call("amount < 500", &[(Verdict::Deny, "the Skill allows this tool only if amount < 500")])]
    #[case::undecided("note == 'x'", &[
        (Verdict::Deny, "the condition \"note == 'x'\" has no result: the call has no argument \"note\""),
        (Verdict::Hold, "the condition \"note == 'x'\" has no result: the call has no argument \"note\""),
    ])]
    #[case::not_compiled("pay(amount)", &[
        (Verdict::Deny, "the condition \"pay(amount)\" has no result: there is no function pay(): "),
        (Verdict::Hold, "the condition \"pay(amount)\" has no result: there is no function pay(): "),
    ])]
    fn both_parts_of_a_policy_quote_the_condition_as_written(
        #[case] condition: &str,
        #[case] expected: &[(Verdict, &str)],
    ) {
        let found = objections(Some(condition));
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for ((verdict, detail), (expected_verdict, prefix)) in found.iter().zip(expected) {
            assert_eq!(verdict, expected_verdict);
            assert!(detail.starts_with(prefix), "{detail}");
        }
    }

    #[test]
    fn a_conditional_policy_without_a_condition_denies_and_holds() {
        let why = "the tool's policy is conditional, but has no condition".to_owned();
        assert_eq!(objections(None), [(Verdict::Deny, why.clone()), (Verdict::Hold, why)]);
    }

    #[rstest]
    #[case::words("five hundred", true)]
    #[case::no_number("NaN", true)]
    #[case::a_comma("1,000", true)]
    #[case::nothing("", true)]
    #[case::large("1000", true)]
    #[case::small("84.30", false)]
    fn an_amount_in_a_text_that_is_no_number_is_held(#[case] amount: &str, #[case] is_held: bool) {
        for when in ["double(order_id) > 500.0", "!(double(order_id) <= 500.0)"] {
            let rules = rules(json!(null), json!([{"toolId": "process_refund", "when": when}]));
            let arguments = json!({"order_id": amount});
            let found = rules.approval_objections(of_arguments(&Arguments::check(&arguments)));
            assert_eq!(!found.is_empty(), is_held, "{when}");
        }
    }
}
