//! What a Skill says of the calls of one tool: `tools[].policy` and `policy.approvals`.

use crate::condition::{Arguments, Condition, Fault};
use crate::gate::pre_tool::Objection;
use crate::tool::CatalogueTool;
use bloomery_crds::v1alpha1::{CallPolicy, GateReason, SkillSpec, When};
use serde_json::Value;

/// The rules of one tool, compiled.
#[derive(Debug, Default)]
pub(super) struct ToolRules {
    allowed: Option<When>,
    requires_approval: Option<When>,
    condition: Option<Result<Condition, Fault>>,
    approvals: Vec<Approval>,
    optional: Vec<String>,
}

#[derive(Debug)]
struct Approval {
    when: Option<Result<Condition, Fault>>,
    text: String,
    approver: Option<String>,
}

impl ToolRules {
    pub(super) fn compile(skill: &SkillSpec, tool: &CatalogueTool) -> Self {
        let declared = skill.tools.iter().find(|declared| declared.name == tool.name);
        let policy: CallPolicy = declared.and_then(|declared| declared.policy.clone()).unwrap_or_default();
        let approvals = skill.policy.iter().flat_map(|policy| &policy.approvals);
        let approvals = approvals.filter(|rule| rule.tool_id == tool.name).map(|rule| Approval {
            when: rule.when.as_deref().map(Condition::compile),
            text: rule.when.clone().unwrap_or_else(|| "every call".to_owned()),
            approver: rule.approver.clone(),
        });
        Self {
            allowed: policy.allowed,
            requires_approval: policy.requires_approval,
            condition: policy.condition.as_deref().map(Condition::compile),
            approvals: approvals.collect(),
            optional: optional(&tool.input_schema),
        }
    }

    /// The conditions that cannot be compiled, and why.
    pub(super) fn faults(&self) -> impl Iterator<Item = &Fault> {
        let conditions = self.condition.iter().chain(self.approvals.iter().filter_map(|rule| rule.when.as_ref()));
        conditions.filter_map(|condition| condition.as_ref().err())
    }

    /// `tools[].policy`: a `conditional` that cannot be decided does not allow, and does hold.
    pub(super) fn policy(&self, arguments: &Result<Arguments<'_>, Fault>, approver: &str) -> Vec<Objection> {
        let deny = |detail: String| Objection::deny(GateReason::ToolPolicy, detail);
        let hold = |detail: String| Objection::hold(GateReason::ToolPolicy, detail, approver);
        let undecided = || Fault::Unsupported("it says conditional, and has no condition".to_owned());
        let decided = || match &self.condition {
            Some(condition) => self.decide(condition, arguments),
            None => Err(undecided()),
        };
        let text = self.condition.as_ref().and_then(|condition| condition.as_ref().ok()).map_or("", Condition::text);
        let mut objections = Vec::new();
        match self.allowed {
            Some(When::Never) => objections.push(deny("the Skill's policy of this tool allows no call".to_owned())),
            Some(When::Conditional) => match decided() {
                Ok(true) => {}
                Ok(false) => objections.push(deny(format!("the Skill allows this tool only if {text}"))),
                Err(fault) => objections.push(deny(format!("the condition {text:?} gives no answer: {fault}"))),
            },
            Some(When::Always) | None => {}
        }
        match self.requires_approval {
            Some(When::Always) => objections.push(hold("every call of this tool needs approval".to_owned())),
            Some(When::Conditional) => match decided() {
                Ok(false) => {}
                Ok(true) => objections.push(hold(format!("{text} needs approval"))),
                Err(fault) => objections.push(hold(format!("the condition {text:?} gives no answer: {fault}"))),
            },
            Some(When::Never) | None => {}
        }
        objections
    }

    /// `policy.approvals`: a condition that cannot be decided holds.
    pub(super) fn approvals(&self, arguments: &Result<Arguments<'_>, Fault>, approver: &str) -> Vec<Objection> {
        let objection = |rule: &Approval| {
            let detail = match rule.when.as_ref().map(|when| self.decide(when, arguments)) {
                Some(Ok(false)) => return None,
                Some(Ok(true)) | None => format!("{} needs approval", rule.text),
                Some(Err(fault)) => format!("the condition {:?} gives no answer: {fault}", rule.text),
            };
            Some(Objection::hold(GateReason::Approval, detail, rule.approver.as_deref().unwrap_or(approver)))
        };
        self.approvals.iter().filter_map(objection).collect()
    }

    fn decide(
        &self,
        condition: &Result<Condition, Fault>,
        arguments: &Result<Arguments<'_>, Fault>,
    ) -> Result<bool, Fault> {
        let condition = condition.as_ref().map_err(Clone::clone)?;
        let arguments = arguments.as_ref().map_err(Clone::clone)?;
        condition.decide(*arguments, &self.optional)
    }
}

/// The arguments that a schema declares and does not require.
fn optional(schema: &Value) -> Vec<String> {
    let required: Vec<&str> =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    properties.map(|(name, _)| name).filter(|name| !required.contains(&name.as_str())).cloned().collect()
}
