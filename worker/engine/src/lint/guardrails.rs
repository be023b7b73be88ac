//! Guardrails: what reads as if it were enforced and is not, and what the prompt has no room for.

use super::finding::Finding;
use super::reading::{self, Known};
use crate::rules::guardrail::{self, Effect, Rule, RuleList};
use crate::rules::text_guardrails;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{SkillSpec, ToolInput, ValueType, Verdict};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// The longest part of a rule that a message quotes, in bytes: what is said of it has to find room too.
const MAX_QUOTED: usize = 200;

pub(super) fn findings(spec: &SkillSpec, rules: Vec<(String, Rule)>) -> Vec<Finding> {
    let known = Known::of(spec);
    // What stands there twice is told so, and nothing else of it: the first one's findings would only be repeated.
    let (rules, mut findings) = once(rules);
    findings.extend(rules.iter().filter_map(|(path, rule)| of_rule(path, rule, &known)));
    findings.extend(rules.iter().flat_map(|(path, rule)| of_threshold(path, rule, spec)));
    findings.extend(without_room(&rules));
    findings
}

fn quoted(rule: &Rule) -> String {
    format!("{:?}", bounded(&rule.text, MAX_QUOTED))
}

/// The rules that say something new, and what is to be said of the others.
fn once(rules: Vec<(String, Rule)>) -> (Vec<(String, Rule)>, Vec<Finding>) {
    let mut said: BTreeMap<String, String> = BTreeMap::new();
    let (mut new, mut findings) = (Vec::new(), Vec::new());
    for (path, rule) in rules {
        match said.entry(meaning(&rule)) {
            Entry::Vacant(place) => {
                place.insert(path.clone());
                new.push((path, rule));
            }
            Entry::Occupied(first) => {
                let message = format!("{} says what {} says already", quoted(&rule), first.get());
                findings.push(Finding::warning(path, message).hint("take one of them out"));
            }
        }
    }
    (new, findings)
}

/// The same for two rules that say the same: by what is enforced of them, else by their words.
fn meaning(rule: &Rule) -> String {
    if rule.stays_text {
        let words: Vec<&str> = rule.text.split_whitespace().collect();
        words.join(" ").trim_end_matches(['.', '!']).to_lowercase()
    } else {
        format!("{:?}", rule.effects)
    }
}

/// Every rule with its path, compiled as if the Skill named all tools.
pub(super) fn compiled(spec: &SkillSpec) -> Vec<(String, Rule)> {
    let Some(guardrails) = spec.policy.as_ref().and_then(|policy| policy.guardrails.as_ref()) else {
        return Vec::new();
    };
    let names: BTreeSet<&str> = super::names::tools(spec).into_iter().collect();
    let sides = [(RuleList::Never, &guardrails.never), (RuleList::Always, &guardrails.always)];
    let of_side = |(side, texts): (RuleList, &Vec<String>)| -> Vec<(String, Rule)> {
        let path = |at: usize| format!("spec.policy.guardrails.{side}[{at}]");
        texts.iter().enumerate().map(|(at, text)| (path(at), guardrail::compile(text, side, &names))).collect()
    };
    sides.into_iter().flat_map(of_side).collect()
}

fn of_rule(path: &str, rule: &Rule, known: &Known<'_>) -> Option<Finding> {
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
        return of_exception(path, rule, known);
    }
    let reading = rule.stays_text.then(|| reading::of(rule, known)).flatten()?;
    let message = format!("{} {}, and is not enforced: it is only told to the model", quoted(rule), reading.why);
    Some(Finding::warning(path, message).hint(reading.hint))
}

fn of_exception(path: &str, rule: &Rule, known: &Known<'_>) -> Option<Finding> {
    let tools: Vec<&str> = rule.effects.iter().filter_map(approved).collect();
    if !tools.is_empty() {
        let message = format!(
            "{} has an exception that no machine understands: every call of {} waits for approval",
            quoted(rule),
            tools.join(", ")
        );
        return Some(
            Finding::warning(path, message).hint("say when in spec.policy.approvals[].when, such as \"amount > 500\""),
        );
    }
    let nearly = rule.text.to_ascii_lowercase().contains("approval") || reading::of(rule, known).is_some();
    nearly.then(|| {
        Finding::warning(
            path,
            format!("{} has an exception that no machine understands: only models are told of it", quoted(rule)),
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

fn of_threshold(path: &str, rule: &Rule, spec: &SkillSpec) -> Vec<Finding> {
    let Some(threshold) = rule.effects.iter().find_map(|effect| match effect {
        Effect::Threshold(threshold) => Some(threshold),
        Effect::ToolDeny { .. } | Effect::RequiresApproval { .. } => None,
    }) else {
        return Vec::new();
    };
    let inputs = || spec.tools.iter().flat_map(|tool| &tool.inputs);
    let is_meant = |input: &&ToolInput| input.name == threshold.field;
    if inputs().next().is_some() && inputs().find(is_meant).is_none() {
        let message = format!(
            "no tool in spec.tools declares an input {:?}: where no call has it, the rule concerns none",
            threshold.field
        );
        let names = inputs().map(|input| input.name.as_str());
        return vec![Finding::warning(path, message).nearest(&threshold.field, names)];
    }
    let no_numbers = spec.tools.iter().filter_map(|tool| {
        let input = tool.inputs.iter().find(is_meant)?;
        (!matches!(input.kind, ValueType::Number | ValueType::Integer)).then_some((tool, input.kind))
    });
    no_numbers
        .map(|(tool, kind)| {
            let happens = if threshold.verdict == Verdict::Hold { "waits for approval" } else { "is denied" };
            let message = format!(
                "{} compares {:?} with a number, and {} declares it as {kind}: every call of {} {happens}",
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
    let plain: Vec<Rule> = rules.iter().map(|(_, rule)| rule.clone()).collect();
    let left_over: BTreeSet<String> = text_guardrails::split(&plain).left_over.into_iter().collect();
    let left = rules.iter().filter(|(_, rule)| rule.stays_text && left_over.contains(&rule.text));
    left.map(|(path, rule)| {
        Finding::warning(
            path.clone(),
            format!("{} does not reach the prompt: only the finalization gate checks it", quoted(rule)),
        )
        .hint(format!(
            "the prompt takes {} rules of about {} tokens together: shorten, or merge some",
            text_guardrails::MAX_RULES,
            text_guardrails::MAX_TOKENS
        ))
    })
    .collect()
}
