//! The rules of a Skill, compiled against the tools of a Job (`docs/explanation/engine.md`, section 3).
//!
//! The rules are a pure function of the Skill and the catalogue: a resumed conversation compiles the same rules.

pub(crate) mod expectations;
pub(crate) mod features;
pub mod guardrail;
pub mod guardrails;
pub(crate) mod inputs;
pub mod limits;
pub(crate) mod objection;
mod prompt_room;
mod remarks;
pub mod text_guardrails;
pub(crate) mod tool_rules;
pub mod workflows;

pub use objection::Objection;

use crate::amount::Amount;
use crate::condition::{self, Arguments, Subject};
use crate::core_tools::SUBGOAL_DONE;
use crate::event::CallId;
use crate::record::CallFacts;
use crate::schema::Schema;
use crate::tool::CatalogueTool;
use bloomery_crds::Digest;
use bloomery_crds::v1alpha1::{GateReason, SkillSpec, Verdict};
use guardrails::Guardrails;
use inputs::DeclaredInputs;
use limits::{Counted, Limits, Reservation};
use serde_json::Value;
use std::collections::BTreeMap;
use tool_rules::{Conditions, ToolRules, naming_rules};
use workflows::{ClosingApprover, WorkflowTracker};

/// The approver if neither a rule nor the Skill names one.
const DEFAULT_APPROVER: &str = "default";

/// The rules from which the gates decide.
#[derive(Debug, Default)]
pub struct Rules {
    /// The workflows and their progress.
    pub workflows: WorkflowTracker,
    /// The guardrails in the system prompt.
    pub in_prompt: Vec<String>,
    /// The schema of the answer's fields, if the output contract has one.
    pub contract: Option<Schema>,
    /// The remarks for the author of the Skill, one sentence each.
    pub remarks: Vec<String>,
    guardrails: Guardrails,
    /// The rules of each tool, by the tool's name.
    tools: BTreeMap<String, ToolRules>,
    /// The declared inputs of each tool, by the tool's name.
    inputs: BTreeMap<String, DeclaredInputs>,
    limits: Limits,
    /// The approver of a call that is held, if no rule names one.
    approver: String,
}

impl Rules {
    /// Compiles the rules of a Skill against its catalogue.
    pub fn compile(skill: &SkillSpec, tools: &[CatalogueTool]) -> Self {
        let policy = skill.policy.clone().unwrap_or_default();
        let limits = Limits::new(&policy);
        let guardrail_texts = policy.guardrails.unwrap_or_default();
        let catalogue = tools.iter().map(|tool| (tool.name.as_str(), &tool.input_schema));
        let guardrails = Guardrails::compile(&guardrail_texts.never, &guardrail_texts.always, catalogue);
        let text = text_guardrails::split(guardrails.rules());
        let contract = skill.output_contract.as_ref().and_then(|contract| contract.schema.as_ref());
        let approver = skill.engine.as_ref().and_then(|engine| engine.approver.clone());
        let mut conditions = Conditions::default();
        let mut of_tool = |tool: &CatalogueTool| {
            let rules = ToolRules::compile(skill, tool, &mut conditions);
            let is_named = guardrails.names(&tool.name) || naming_rules(skill, &tool.name).next().is_some();
            if is_named { rules } else { rules.or_default(tool, policy.effects, &mut conditions) }
        };
        let tool_rules = tools.iter().map(|tool| (tool.name.clone(), of_tool(tool))).collect();
        let inputs_of = |tool: &CatalogueTool| (tool.name.clone(), DeclaredInputs::new(skill.inputs_of(&tool.name)));
        let contract = contract.map(|schema| Schema::compile(&Value::Object(schema.clone())));
        Self {
            remarks: remarks::remarks(skill, tools, &text.without_room, &tool_rules),
            workflows: WorkflowTracker::new(&policy.workflows, tools.iter().map(|tool| tool.name.as_str())),
            in_prompt: text.in_prompt,
            contract,
            guardrails,
            tools: tool_rules,
            inputs: tools.iter().map(inputs_of).collect(),
            limits,
            approver: approver.unwrap_or_else(|| DEFAULT_APPROVER.to_owned()),
        }
    }

    /// Adds remarks before those of the Skill.
    #[must_use]
    pub fn with_remarks(self, new: Vec<String>) -> Self {
        Self { remarks: new.into_iter().chain(self.remarks).collect(), ..self }
    }

    /// Returns the approver of a call that is held, if no rule names one.
    pub(crate) fn default_approver(&self) -> &str {
        &self.approver
    }

    /// Returns the objections of the tool's own policy to a call.
    pub fn tool_policy(&self, tool: &CatalogueTool, subject: Subject<'_>) -> Vec<Objection> {
        let rules = self.tools.get(&tool.name);
        rules.map(|rules| rules.policy_objections(subject)).unwrap_or_default()
    }

    /// Returns the objections of `policy.approvals` to a call, and those of steps that an approver has to close.
    pub fn approvals(&self, tool: &CatalogueTool, subject: Subject<'_>) -> Vec<Objection> {
        let rules = self.tools.get(&tool.name);
        let of_rules = rules.map(|rules| rules.approval_objections(subject)).unwrap_or_default();
        let of_steps = self.closing_approvals(tool, subject);
        of_rules.into_iter().chain(of_steps).collect()
    }

    /// Returns a hold of a call that closes a step, for each approver that the step names.
    fn closing_approvals(&self, tool: &CatalogueTool, subject: Subject<'_>) -> Vec<Objection> {
        let Some(arguments) = subject.arguments.as_ref().ok().filter(|_| tool.name == SUBGOAL_DONE) else {
            return Vec::new();
        };
        let step = arguments.get("step").and_then(Value::as_str).unwrap_or_default();
        let evidence = arguments.get("evidence").and_then(Value::as_u64).unwrap_or_default();
        let not_applicable = arguments.get("notApplicable").and_then(Value::as_bool).unwrap_or_default();
        let approvers = self.workflows.closing_approvers(step, evidence, not_applicable);
        let hold = |ClosingApprover { approver, reason }| Objection::hold(GateReason::Workflow, reason, Some(approver));
        approvers.into_iter().map(hold).collect()
    }

    /// Returns the inputs that the Skill declares for a tool, if it declares any.
    pub(crate) fn inputs(&self, tool: &CatalogueTool) -> Option<&DeclaredInputs> {
        self.inputs.get(&tool.name).filter(|declared| !declared.is_empty())
    }

    /// Returns the objection to arguments that break a rule of the tool's declared inputs.
    pub fn declared_inputs(&self, tool: &CatalogueTool, arguments: &Value) -> Option<Objection> {
        self.inputs.get(&tool.name)?.objection(arguments)
    }

    /// Returns the objections of `policy.limits` to a call.
    pub fn limits(&self, tool: &CatalogueTool, arguments: &Value, counted: Counted<'_>) -> Vec<Objection> {
        self.limits.objections(&tool.name, arguments, counted)
    }

    /// Returns whether the ledger of the Skill must count the calls of a tool.
    pub(crate) fn need_ledger(&self, tool: &CatalogueTool) -> bool {
        self.limits.need_ledger(&tool.name)
    }

    /// Returns the reservation of a call in the ledger of the Skill, if a limit needs it.
    pub(crate) fn reservation<'a>(
        &self,
        tool: &'a CatalogueTool,
        arguments: &Value,
        call: &'a CallId,
        key: Digest,
    ) -> Option<Reservation<'a>> {
        self.limits.reservation(&tool.name, arguments, call, key)
    }

    /// Returns the amount of a call for each limit of the Job that it counts towards, by the position of the limit.
    pub(crate) fn limited_amounts(&self, tool: &CatalogueTool, arguments: &Value) -> Vec<(usize, Amount)> {
        self.limits.amounts(&tool.name, arguments)
    }

    /// Returns an objection for each required workflow that needs an earlier step before a call.
    pub fn workflow_order(&self, tool: &CatalogueTool) -> Vec<Objection> {
        let missing_steps = self.workflows.missing_before(&tool.name).into_iter();
        missing_steps
            .map(|missing| {
                let detail =
                    format!("the step {:?} of the workflow {:?} must come first", missing.step, missing.workflow);
                Objection::deny(GateReason::Workflow, detail)
            })
            .collect()
    }

    /// Returns an objection for each condition of a required workflow that a call does not meet.
    pub(crate) fn workflow_expectations(
        &self,
        tool: &CatalogueTool,
        arguments: &Result<Arguments<'_>, condition::Error>,
        facts: CallFacts<'_>,
    ) -> Vec<Objection> {
        let unmet = self.workflows.unmet_before(&tool.name, arguments, facts).into_iter();
        unmet.map(|detail| Objection::deny(GateReason::Workflow, detail)).collect()
    }

    /// Returns the objections of the compiled guardrails to a call.
    pub fn guardrails(&self, tool: &CatalogueTool, arguments: &Value) -> Vec<Objection> {
        let violations = self.guardrails.violations(&tool.name, arguments).into_iter();
        violations
            .map(|violation| {
                let detail = format!("{} (guardrail {:?})", violation.detail, violation.rule);
                match violation.verdict {
                    Verdict::Hold => Objection::hold(GateReason::Guardrail, detail, None),
                    Verdict::Allow | Verdict::Deny => Objection::deny(GateReason::Guardrail, detail),
                }
            })
            .collect()
    }
}
