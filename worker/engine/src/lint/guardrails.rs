//! The lint of guardrails: rules that read as if they were enforced, duplicates, and rules without room in the prompt.

use super::finding::Finding;
use super::known_tools::KnownTools;
use super::reading::{self, Known};
use super::unmatched;
use crate::condition::Kinds;
use crate::rules::guardrail::{self, Fault, Rule, RuleEffect, RuleList, Threshold, reads_as_tool};
use crate::rules::text_guardrails;
use bloomery_crds::nearest::is_near;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{SkillSpec, Verdict};
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

/// The longest quote of a rule in a message, in bytes.
const MAX_QUOTE_BYTES: usize = 200;

pub(super) fn findings(spec: &SkillSpec, rules: Vec<(String, Rule)>, known: &KnownTools) -> Vec<Finding> {
    let words = Known::new(known);
    // A duplicate has no other findings: they would repeat those of the first rule.
    let (rules, mut findings) = split_duplicates(rules);
    let reading = rules.iter().filter_map(|(path, rule)| match &rule.fault {
        Some(fault) => check_fault(path, rule, fault, spec, (known, &words)),
        None => check_rule(path, rule, spec, (known, &words)),
    });
    findings.extend(reading);
    findings.extend(rules.iter().flat_map(|(path, rule)| check_threshold(path, rule, spec, known)));
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

/// Returns every rule with its path, compiled as if the known tools were the catalogue.
pub(super) fn compile_all(spec: &SkillSpec, known: &KnownTools) -> Vec<(String, Rule)> {
    let Some(guardrails) = spec.policy.as_ref().and_then(|policy| policy.guardrails.as_ref()) else {
        return Vec::new();
    };
    let names = known.names();
    let lists = [(RuleList::Never, &guardrails.never), (RuleList::Always, &guardrails.always)];
    let of_list = |(list, texts): (RuleList, &Vec<String>)| -> Vec<(String, Rule)> {
        let path = |at: usize| format!("spec.policy.guardrails.{list}[{at}]");
        texts.iter().enumerate().map(|(at, text)| (path(at), guardrail::compile(text, list, &names))).collect()
    };
    lists.into_iter().flat_map(of_list).collect()
}

/// Checks a rule that looks like a pattern, but is not compiled.
fn check_fault(
    path: &str,
    rule: &Rule,
    fault: &Fault,
    spec: &SkillSpec,
    (known, words): (&KnownTools, &Known<'_>),
) -> Option<Finding> {
    let message = || format!("{} is not enforced: {fault}, so the rule is only text in the prompt", quoted(rule));
    match fault {
        Fault::Contradiction | Fault::NoNumber(_) => {
            let is_meant = reading::compares_an_argument(rule, words);
            Some(not_enforced(path, message(), is_meant && known.is_complete()))
        }
        Fault::EveryTool | Fault::NoName => Some(Finding::error(path, message()).hint(
            "to deny every tool, write \"*\" as the whole rule under never; to hold every call, write toolId: \"*\" in \
             spec.policy.approvals",
        )),
        Fault::NoTool(tool) if !known.is_complete() => {
            let message = format!("{} is enforced only if the MCP server lists a tool {tool:?}", quoted(rule));
            Some(Finding::warning(path, message).nearest(tool.trim_end_matches('*'), known.names()))
        }
        // `Never use slang` is prose.
        Fault::NoTool(tool) if !reads_as_tool(tool) && !words.has_same_letters(tool) && !words.begins_as_tool(tool) => {
            Some(Finding::warning(path, message()).nearest(tool, known.names()))
        }
        Fault::NoTool(_) if spec.allows_unmatched() => None,
        Fault::NoTool(tool) => {
            let message =
                format!("no tool of the MCP server matches {tool:?}: the rule {} protects nothing", quoted(rule));
            Some(unmatched::with_remedy(Finding::error(path, message), tool, known))
        }
    }
}

/// Returns the finding about a rule that is only text: an error if its author certainly means it to be enforced.
fn not_enforced(path: &str, message: impl AsRef<str>, is_certain: bool) -> Finding {
    if is_certain { Finding::error(path, message) } else { Finding::warning(path, message) }
}

fn check_rule(path: &str, rule: &Rule, spec: &SkillSpec, (known, words): (&KnownTools, &Known<'_>)) -> Option<Finding> {
    let reading = rule.stays_text.then(|| reading::not_enforced(rule, words)).flatten();
    let is_certain =
        reading.as_ref().is_some_and(|reading| reading.is_meant) && known.is_complete() && !spec.allows_unmatched();
    if rule.has_exception() {
        return check_exception(path, rule, reading.is_some(), is_certain);
    }
    let reading = reading?;
    let message = format!("{} {}, but is not enforced: it is only text in the prompt", quoted(rule), reading.why);
    Some(not_enforced(path, message, is_certain).hint(reading.hint))
}

/// Checks a rule with an exception, such as `unless`.
fn check_exception(path: &str, rule: &Rule, reads_as_enforced: bool, is_certain: bool) -> Option<Finding> {
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
    let reads_as_enforced = reads_as_enforced || rule.text.to_ascii_lowercase().contains("approval");
    reads_as_enforced.then(|| {
        let message =
            format!("{} has an exception that cannot be checked: it is only text in the prompt", quoted(rule));
        not_enforced(path, message, is_certain)
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

/// Returns the threshold of a rule, if it has one.
pub(super) fn threshold(rule: &Rule) -> Option<&Threshold> {
    rule.effects.iter().find_map(|effect| match effect {
        RuleEffect::Threshold(threshold) => Some(threshold),
        RuleEffect::ToolDeny { .. } | RuleEffect::RequiresApproval { .. } => None,
    })
}

fn check_threshold(path: &str, rule: &Rule, spec: &SkillSpec, known: &KnownTools) -> Vec<Finding> {
    let Some(threshold) = threshold(rule) else { return Vec::new() };
    let field = threshold.field.as_str();
    if let Some(finding) = unknown_field(path, field, spec, known) {
        return vec![finding];
    }
    let with_other_type = known.matching("*").filter_map(|(tool, signature)| {
        let kinds = signature.kinds(field)?;
        (!kinds.may_be(Kinds::NUMBER)).then_some((tool, kinds))
    });
    with_other_type
        .map(|(tool, kinds)| {
            let consequence = if threshold.verdict == Verdict::Hold { "waits for approval" } else { "is denied" };
            let message = format!(
                "{} compares {field:?} with a number, and in {tool} it is {kinds}: every call of {tool} {consequence}",
                quoted(rule),
            );
            Finding::warning(path, message).hint("name an argument that is a number")
        })
        .collect()
}

/// Finds a threshold whose field no tool has.
fn unknown_field(path: &str, field: &str, spec: &SkillSpec, known: &KnownTools) -> Option<Finding> {
    let fields = known.fields();
    let is_tool = known.names().contains(field);
    if fields.contains(field) || fields.is_empty() && !is_tool {
        return None;
    }
    let whose =
        if known.is_complete() { "of the MCP server has an argument" } else { "in spec.tools declares an input" };
    let message = format!("no tool {whose} {field:?}: the rule applies to no call without it");
    let is_typo = fields.iter().any(|known| is_near(field, known));
    let is_certain =
        known.is_complete() && (is_typo || is_tool || !known.may_have_other_fields()) && !spec.allows_unmatched();
    let finding = not_enforced(path, message, is_certain);
    if is_tool {
        return Some(finding.hint(format!("{field} is a tool: write toolId and when in spec.policy.approvals")));
    }
    let finding = finding.nearest(field, fields.iter().map(String::as_str));
    if finding.hint.is_some() || !known.is_complete() {
        return Some(finding);
    }
    Some(finding.hint("if a tool has it, declare it in the tool's `inputs` in spec.tools"))
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
