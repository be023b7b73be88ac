//! Guardrails: what reads as if it were enforced and is not, and what the prompt has no room for.

use super::{Finding, tools};
use crate::bootstrap::rule::{self, Effect, Rule, Side};
use crate::bootstrap::text;
use bloomery_crds::v1alpha1::{SkillSpec, ToolInput};
use std::collections::BTreeSet;

pub(super) fn findings(spec: &SkillSpec) -> Vec<Finding> {
    let names = tools(spec).into_iter().collect();
    let rules = compiled(spec, &names);
    let mut findings: Vec<Finding> = rules.iter().filter_map(|(path, rule)| of_rule(path, rule, &names)).collect();
    findings.extend(rules.iter().filter_map(|(path, rule)| of_threshold(path, rule, spec)));
    findings.extend(without_room(&rules));
    findings
}

fn compiled(spec: &SkillSpec, names: &BTreeSet<&str>) -> Vec<(String, Rule)> {
    let Some(guardrails) = spec.policy.as_ref().and_then(|policy| policy.guardrails.as_ref()) else {
        return Vec::new();
    };
    let sides = [(Side::Never, &guardrails.never), (Side::Always, &guardrails.always)];
    let of_side = |(side, texts): (Side, &Vec<String>)| -> Vec<(String, Rule)> {
        let path = |at: usize| format!("spec.policy.guardrails.{side}[{at}]");
        texts.iter().enumerate().map(|(at, text)| (path(at), rule::compile(text, side, names))).collect()
    };
    sides.into_iter().flat_map(of_side).collect()
}

fn of_rule(path: &str, rule: &Rule, names: &BTreeSet<&str>) -> Option<Finding> {
    if let Some(lint) = &rule.lint {
        let mut words =
            rule.text.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '_'));
        let near = words.find_map(|word| bloomery_crds::nearest::nearest(word, names.iter().copied()));
        let finding = Finding::warning(path, format!("{:?} is not enforced: {lint}", rule.text));
        return Some(match near {
            Some(near) => finding.hint(format!("did you mean the tool {near:?}?")),
            None => finding,
        });
    }
    let tools: Vec<&str> = rule.effects.iter().filter_map(approved).collect();
    if !rule.has_exception() {
        return None;
    }
    if !tools.is_empty() {
        let message = format!(
            "{:?} has an exception that no machine understands: every call of {} waits for approval",
            rule.text,
            tools.join(", ")
        );
        return Some(
            Finding::warning(path, message).hint("say when in spec.policy.approvals[].when, such as \"amount > 500\""),
        );
    }
    let nearly = rule.text.to_ascii_lowercase().contains("approval") || rule.text.contains(['<', '>']);
    nearly.then(|| {
        Finding::warning(
            path,
            format!("{:?} has an exception that no machine understands: only models are told of it", rule.text),
        )
        .hint("to have calls wait for a person, say so in spec.policy.approvals: toolId, and when they do")
    })
}

fn approved(effect: &Effect) -> Option<&str> {
    match effect {
        Effect::RequiresApproval { tool } => Some(tool),
        Effect::ToolDeny { .. } | Effect::Threshold(_) => None,
    }
}

fn of_threshold(path: &str, rule: &Rule, spec: &SkillSpec) -> Option<Finding> {
    let threshold = rule.effects.iter().find_map(|effect| match effect {
        Effect::Threshold(threshold) => Some(threshold),
        Effect::ToolDeny { .. } | Effect::RequiresApproval { .. } => None,
    })?;
    let inputs = || spec.tools.iter().flat_map(|tool| &tool.inputs);
    let is_known = |input: &ToolInput| input.name == threshold.field;
    if inputs().next().is_none() || inputs().any(is_known) {
        return None;
    }
    let message = format!(
        "no tool in spec.tools declares an input {:?}: where no call has it, the rule concerns none",
        threshold.field
    );
    Some(Finding::warning(path, message).nearest(&threshold.field, inputs().map(|input| input.name.as_str())))
}

fn without_room(rules: &[(String, Rule)]) -> Vec<Finding> {
    let plain: Vec<Rule> = rules.iter().map(|(_, rule)| rule.clone()).collect();
    let left_over: BTreeSet<String> = text::part(&plain).left_over.into_iter().collect();
    let left = rules.iter().filter(|(_, rule)| rule.stays_text && left_over.contains(&rule.text));
    left.map(|(path, rule)| {
        Finding::warning(
            path.clone(),
            format!("{:?} does not reach the prompt: only the finalization gate checks it", rule.text),
        )
        .hint(format!(
            "the prompt takes {} rules of about {} tokens together: shorten, or merge some",
            text::MAX_RULES,
            text::MAX_TOKENS
        ))
    })
    .collect()
}
