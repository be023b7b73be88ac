//! The lint of guardrails: rules that read as if they were enforced, duplicates, and rules without room in the prompt.

use super::finding::Finding;
use super::reading::{self, Known};
use crate::rules::guardrail::{self, Rule, RuleEffect, RuleList};
use crate::rules::text_guardrails;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{SkillSpec, ToolInput, ValueType, Verdict};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// The longest quote of a rule in a message, in bytes.
const MAX_QUOTE_BYTES: usize = 200;

pub(super) fn findings(spec: &SkillSpec, rules: Vec<(String, Rule)>) -> Vec<Finding> {
    let known = Known::new(spec);
    // A duplicate has no other findings: they would repeat those of the first rule.
    let (rules, mut findings) = split_duplicates(rules);
    findings.extend(rules.iter().filter_map(|(path, rule)| check_rule(path, rule, &known)));
    findings.extend(rules.iter().flat_map(|(path, rule)| check_threshold(path, rule, spec)));
    findings.extend(without_room(&rules));
    findings
}

fn quoted(rule: &Rule) -> String {
    format!("{:?}", bounded(&rule.text, MAX_QUOTE_BYTES))
}

/// Returns the rules without duplicates, and a finding for each duplicate.
fn split_duplicates(rules: Vec<(String, Rule)>) -> (Vec<(String, Rule)>, Vec<Finding>) {
    let mut first_paths: BTreeMap<String, String> = BTreeMap::new();
    let (mut unique, mut findings) = (Vec::new(), Vec::new());
    for (path, rule) in rules {
        match first_paths.entry(meaning(&rule)) {
            Entry::Vacant(place) => {
                place.insert(path.clone());
                unique.push((path, rule));
            }
            Entry::Occupied(first) => {
                let message = format!("{} has the same meaning as {}", quoted(&rule), first.get());
                findings.push(Finding::warning(path, message).hint("remove one of them"));
            }
        }
    }
    (unique, findings)
}

/// Returns a key that is equal for rules with the same meaning: by their effects, or else by their words.
fn meaning(rule: &Rule) -> String {
    if rule.stays_text {
        let words: Vec<&str> = rule.text.split_whitespace().collect();
        words.join(" ").trim_end_matches(['.', '!']).to_lowercase()
    } else {
        format!("{:?}", rule.effects)
    }
}

/// Returns every rule with its path, compiled as if the declared tools and the core tools were the catalogue.
pub(super) fn compile_all(spec: &SkillSpec) -> Vec<(String, Rule)> {
    let Some(guardrails) = spec.policy.as_ref().and_then(|policy| policy.guardrails.as_ref()) else {
        return Vec::new();
    };
    let names: BTreeSet<&str> = super::names::known_tools(spec).into_iter().collect();
    let lists = [(RuleList::Never, &guardrails.never), (RuleList::Always, &guardrails.always)];
    let of_list = |(list, texts): (RuleList, &Vec<String>)| -> Vec<(String, Rule)> {
        let path = |at: usize| format!("spec.policy.guardrails.{list}[{at}]");
        texts.iter().enumerate().map(|(at, text)| (path(at), guardrail::compile(text, list, &names))).collect()
    };
    lists.into_iter().flat_map(of_list).collect()
}

fn check_rule(path: &str, rule: &Rule, known: &Known<'_>) -> Option<Finding> {
    if let Some(lint) = &rule.lint {
        let mut words =
            rule.text.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '_'));
        let near = words.find_map(|word| bloomery_crds::nearest::nearest(word, known.tools.iter().copied()));
        let finding = Finding::warning(path, format!("{} is not enforced: {lint}", quoted(rule)));
        return Some(match near {
            Some(near) => finding.hint(format!("did you mean the tool {near:?}?")),
            None => finding,
        });
    }
    if rule.has_exception() {
        return check_exception(path, rule, known);
    }
    let reading = rule.stays_text.then(|| reading::not_enforced(rule, known)).flatten()?;
    let message = format!("{} {}, but is not enforced: it is only text in the prompt", quoted(rule), reading.why);
    Some(Finding::warning(path, message).hint(reading.hint))
}

/// Checks a rule with an exception, such as `unless`.
fn check_exception(path: &str, rule: &Rule, known: &Known<'_>) -> Option<Finding> {
    let tools: Vec<&str> = rule.effects.iter().filter_map(held_tool).collect();
    if !tools.is_empty() {
        let message = format!(
            "{} has an exception that cannot be checked: every call of {} waits for approval",
            quoted(rule),
            tools.join(", ")
        );
        return Some(
            Finding::warning(path, message)
                .hint("write the exception in spec.policy.approvals[].when, such as \"amount > 500\""),
        );
    }
    let reads_as_enforced =
        rule.text.to_ascii_lowercase().contains("approval") || reading::not_enforced(rule, known).is_some();
    reads_as_enforced.then(|| {
        Finding::warning(
            path,
            format!("{} has an exception that cannot be checked: it is only text in the prompt", quoted(rule)),
        )
        .hint("to hold calls for approval, write toolId and when in spec.policy.approvals")
    })
}

/// Returns the tool whose calls an effect holds, if any.
fn held_tool(effect: &RuleEffect) -> Option<&str> {
    match effect {
        RuleEffect::RequiresApproval { tool } => Some(tool),
        RuleEffect::ToolDeny { .. } | RuleEffect::Threshold(_) => None,
    }
}

fn check_threshold(path: &str, rule: &Rule, spec: &SkillSpec) -> Vec<Finding> {
    let Some(threshold) = rule.effects.iter().find_map(|effect| match effect {
        RuleEffect::Threshold(threshold) => Some(threshold),
        RuleEffect::ToolDeny { .. } | RuleEffect::RequiresApproval { .. } => None,
    }) else {
        return Vec::new();
    };
    let inputs = || spec.tools.iter().flat_map(|tool| &tool.inputs);
    let is_meant = |input: &&ToolInput| input.name == threshold.field;
    if inputs().next().is_some() && inputs().find(is_meant).is_none() {
        let message = format!(
            "no tool in spec.tools declares an input {:?}: the rule applies to no call without it",
            threshold.field
        );
        let names = inputs().map(|input| input.name.as_str());
        return vec![Finding::warning(path, message).nearest(&threshold.field, names)];
    }
    let with_other_type = spec.tools.iter().filter_map(|tool| {
        let input = tool.inputs.iter().find(is_meant)?;
        (!matches!(input.kind, ValueType::Number | ValueType::Integer)).then_some((tool, input.kind))
    });
    with_other_type
        .map(|(tool, kind)| {
            let consequence = if threshold.verdict == Verdict::Hold { "waits for approval" } else { "is denied" };
            let message = format!(
                "{} compares {:?} with a number, and {} declares it as {kind}: every call of {} {consequence}",
                quoted(rule),
                threshold.field,
                tool.name,
                tool.name
            );
            Finding::warning(path, message).hint("name an argument that is a number")
        })
        .collect()
}

fn without_room(rules: &[(String, Rule)]) -> Vec<Finding> {
    let all_rules: Vec<Rule> = rules.iter().map(|(_, rule)| rule.clone()).collect();
    let without_room: BTreeSet<String> = text_guardrails::split(&all_rules).without_room.into_iter().collect();
    let rules_without_room = rules.iter().filter(|(_, rule)| rule.stays_text && without_room.contains(&rule.text));
    rules_without_room
        .map(|(path, rule)| {
            Finding::warning(
                path.clone(),
                format!("{} does not reach the prompt: only the finalization gate checks it", quoted(rule)),
            )
            .hint(format!(
                "the prompt has room for {} rules of about {} tokens in all: shorten or merge some",
                text_guardrails::MAX_RULES,
                text_guardrails::MAX_TOKENS
            ))
        })
        .collect()
}
