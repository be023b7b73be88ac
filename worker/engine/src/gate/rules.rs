//! The rules of a Skill, compiled once against the tools of a Job (seed 002, section 4.1: bootstrap, without a model).

mod remarks;
mod tool_rules;

use crate::bootstrap::guardrails::Guardrails;
use crate::bootstrap::text;
use crate::bootstrap::workflows::Progress;
use crate::condition::{Arguments, Fault};
use crate::gate::objection::Objection;
use crate::gate::schema::Schema;
use crate::tool::CatalogueTool;
use bloomery_crds::v1alpha1::{GateReason, SkillSpec, Verdict};
use serde_json::Value;
use std::collections::BTreeMap;
use tool_rules::ToolRules;

/// Who approves where neither a rule nor the Skill names anybody.
const DEFAULT_APPROVER: &str = "default";

/// What the gates rule by. A pure function of the Skill and the catalogue, and of the steps that were done since.
#[derive(Debug, Default)]
pub struct Rules {
    /// The workflows, and how far they are.
    pub workflows: Progress,
    /// The guardrails that the model reads in every step.
    pub in_prompt: Vec<String>,
    /// The schema of the answer's fields, where the output contract has one.
    pub contract: Option<Schema>,
    /// What of the Skill does not hold as it is written, a sentence each.
    pub remarks: Vec<String>,
    guardrails: Guardrails,
    tools: BTreeMap<String, ToolRules>,
    approver: String,
}

impl Rules {
    /// Compiles the rules of a Skill against its catalogue.
    pub fn compile(skill: &SkillSpec, tools: &[CatalogueTool]) -> Self {
        let policy = skill.policy.clone().unwrap_or_default();
        let written = policy.guardrails.unwrap_or_default();
        let catalogue = tools.iter().map(|tool| (tool.name.as_str(), &tool.input_schema));
        let guardrails = Guardrails::compile(&written.never, &written.always, catalogue);
        let told = text::part(guardrails.rules());
        let contract = skill.output_contract.as_ref().and_then(|contract| contract.schema.as_ref());
        let approver = skill.engine.as_ref().and_then(|engine| engine.approver.clone());
        let of_tools = tools.iter().map(|tool| (tool.name.clone(), ToolRules::compile(skill, tool))).collect();
        let contract = contract.map(|schema| Schema::compile(&Value::Object(schema.clone())));
        Self {
            remarks: remarks::of(skill, tools, &told.left_over, &of_tools),
            workflows: Progress::new(&policy.workflows, tools.iter().map(|tool| tool.name.as_str())),
            in_prompt: told.in_prompt,
            contract,
            guardrails,
            tools: of_tools,
            approver: approver.unwrap_or_else(|| DEFAULT_APPROVER.to_owned()),
        }
    }

    /// The same, with more to be remarked, which is graver.
    #[must_use]
    pub fn remarking(self, more: Vec<String>) -> Self {
        Self { remarks: more.into_iter().chain(self.remarks).collect(), ..self }
    }

    /// What the tool's own policy says of a call.
    pub fn of_tool(&self, tool: &CatalogueTool, arguments: &Result<Arguments<'_>, Fault>) -> Vec<Objection> {
        let rules = self.tools.get(&tool.name);
        rules.map(|rules| rules.policy(arguments, &self.approver)).unwrap_or_default()
    }

    /// What `policy.approvals` says of a call.
    pub fn approvals(&self, tool: &CatalogueTool, arguments: &Result<Arguments<'_>, Fault>) -> Vec<Objection> {
        let rules = self.tools.get(&tool.name);
        rules.map(|rules| rules.approvals(arguments, &self.approver)).unwrap_or_default()
    }

    /// Which earlier steps of required workflows a call lacks.
    pub fn order(&self, tool: &CatalogueTool) -> Vec<Objection> {
        let missing = self.workflows.missing_before(&tool.name).into_iter();
        missing
            .map(|missing| {
                let detail = format!(
                    "the step {:?} of the workflow {:?} comes first, and is not done",
                    missing.step, missing.workflow
                );
                Objection::deny(GateReason::Workflow, detail)
            })
            .collect()
    }

    /// What the compiled guardrails say of a call.
    pub fn guardrails(&self, tool: &CatalogueTool, arguments: &Value) -> Vec<Objection> {
        let findings = self.guardrails.findings(&tool.name, arguments).into_iter();
        findings
            .map(|finding| {
                let detail = format!("{} (guardrail {:?})", finding.detail, finding.rule);
                match finding.verdict {
                    Verdict::Hold => Objection::hold(GateReason::Guardrail, detail, &self.approver),
                    Verdict::Allow | Verdict::Deny => Objection::deny(GateReason::Guardrail, detail),
                }
            })
            .collect()
    }
}
