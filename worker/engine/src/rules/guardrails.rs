//! The compiled guardrails of a Skill.

mod field_index;

use super::guardrail::{self, Rule, RuleEffect, RuleList, Threshold};
use crate::schema::property_names;
use bloomery_crds::v1alpha1::Verdict;
use field_index::FieldIndex;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The guardrails of a Skill, compiled against the tools of a Job. They are indexed by tool and by field, so a decision
/// reads only the rules that can apply.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Guardrails {
    rules: Vec<Rule>,
    /// The rules about each tool, by its name.
    tool_rules: BTreeMap<String, Vec<ToolRule>>,
    /// The thresholds of all rules.
    thresholds: Vec<ThresholdRule>,
    /// The indexes in `thresholds`, for each field.
    fields: FieldIndex,
    /// The indexes of the thresholds whose field is in the schema of a tool, for each tool.
    declared: BTreeMap<String, Vec<usize>>,
}

/// A guardrail that a call breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation<'a> {
    /// The verdict: hold or deny.
    pub verdict: Verdict,
    /// The rule as written.
    pub rule: &'a str,
    /// The way in which the call breaks it.
    pub detail: String,
}

#[derive(Debug, Clone, PartialEq)]
struct ToolRule {
    /// The index in [`Guardrails::rules`].
    rule: usize,
    /// The verdict on every call of the tool: hold or deny.
    verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq)]
struct ThresholdRule {
    /// The index in [`Guardrails::rules`].
    rule: usize,
    threshold: Threshold,
}

/// The outcome of a threshold for a call.
#[derive(Debug, Clone)]
enum Outcome {
    /// The arguments do not have the field.
    Absent,
    /// No value of the field breaks the rule.
    Kept,
    /// The fault of the first value that breaks the rule.
    Broken(String),
}

impl Guardrails {
    /// Compiles the rules against the name and argument schema of each tool in the catalogue.
    pub fn compile<'t>(
        never: &[String],
        always: &[String],
        catalogue: impl IntoIterator<Item = (&'t str, &'t Value)>,
    ) -> Self {
        let catalogue: Vec<_> = catalogue.into_iter().collect();
        let names: BTreeSet<&str> = catalogue.iter().map(|(name, _)| *name).collect();
        let lists = [(RuleList::Never, never), (RuleList::Always, always)];
        let texts = lists.into_iter().flat_map(|(list, texts)| texts.iter().map(move |text| (list, text)));
        let mut compiled = Self::default();
        for (list, text) in texts {
            compiled.add(guardrail::compile(text, list, &names));
        }
        for (name, schema) in catalogue {
            let declared = compiled.declared_by(schema);
            if !declared.is_empty() {
                compiled.declared.insert(name.to_owned(), declared);
            }
        }
        compiled
    }

    /// All rules as written: first `never`, then `always`.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns whether a compiled rule has the full name of a tool. A rule with a prefix of names is not about that tool alone.
    pub fn names(&self, tool: &str) -> bool {
        let rules = self.tool_rules.get(tool).into_iter().flatten();
        let mut words = rules.flat_map(|rule| guardrail::split_words(self.rule_text(rule.rule)));
        words.any(|word| guardrail::plain(word) == tool)
    }

    /// Returns a violation for each rule that a call breaks.
    ///
    /// A threshold applies to a call if its arguments have the field, at any depth, or if its tool declares the field. A
    /// declared field that is missing, or not a number, breaks the rule.
    pub fn violations(&self, tool: &str, arguments: &Value) -> Vec<Violation<'_>> {
        let of_tool = self.tool_rules.get(tool).into_iter().flatten().map(|tool_rule| Violation {
            verdict: tool_rule.verdict,
            rule: self.rule_text(tool_rule.rule),
            detail: match tool_rule.verdict {
                Verdict::Hold => format!("{tool} needs approval"),
                Verdict::Allow | Verdict::Deny => format!("{tool} must not be used"),
            },
        });
        of_tool.chain(self.broken_thresholds(tool, arguments)).collect()
    }

    fn broken_thresholds(&self, tool: &str, arguments: &Value) -> Vec<Violation<'_>> {
        if self.thresholds.is_empty() {
            return Vec::new();
        }
        let mut outcomes = vec![Outcome::Absent; self.thresholds.len()];
        let mut parts = vec![arguments];
        while let Some(part) = parts.pop() {
            match part {
                Value::Object(fields) => {
                    for (name, value) in fields {
                        self.compare(name, value, &mut outcomes);
                        if value.is_object() || value.is_array() {
                            parts.push(value);
                        }
                    }
                }
                Value::Array(items) => parts.extend(items.iter().filter(|item| item.is_object() || item.is_array())),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        for index in self.declared.get(tool).into_iter().flatten() {
            let (Some(rule), Some(outcome)) = (self.thresholds.get(*index), outcomes.get_mut(*index)) else { continue };
            if matches!(outcome, Outcome::Absent) {
                *outcome = Outcome::Broken(rule.missing_field_detail());
            }
        }
        let broken = outcomes.into_iter().zip(&self.thresholds).filter_map(|(outcome, rule)| match outcome {
            Outcome::Broken(detail) => Some(rule.violation(self, detail)),
            Outcome::Absent | Outcome::Kept => None,
        });
        broken.collect()
    }

    /// Compares a value with the thresholds of its field.
    fn compare(&self, field: &str, value: &Value, outcomes: &mut [Outcome]) {
        for index in self.fields.get(field) {
            let (Some(rule), Some(outcome)) = (self.thresholds.get(*index), outcomes.get_mut(*index)) else { continue };
            if !matches!(outcome, Outcome::Broken(_)) {
                *outcome = rule.threshold.broken_by(value).map_or(Outcome::Kept, Outcome::Broken);
            }
        }
    }

    fn add(&mut self, rule: Rule) {
        let index = self.rules.len();
        for effect in &rule.effects {
            match effect {
                RuleEffect::ToolDeny { tool } => {
                    self.add_tool_rule(tool, ToolRule { rule: index, verdict: Verdict::Deny });
                }
                RuleEffect::RequiresApproval { tool } => {
                    self.add_tool_rule(tool, ToolRule { rule: index, verdict: Verdict::Hold });
                }
                RuleEffect::Threshold(threshold) => {
                    self.fields.add(&threshold.field, self.thresholds.len());
                    self.thresholds.push(ThresholdRule { rule: index, threshold: threshold.clone() });
                }
            }
        }
        self.rules.push(rule);
    }

    fn add_tool_rule(&mut self, tool: &str, rule: ToolRule) {
        self.tool_rules.entry(tool.to_owned()).or_default().push(rule);
    }

    /// Returns the indexes of the thresholds whose field is a property anywhere in a schema.
    fn declared_by(&self, schema: &Value) -> Vec<usize> {
        let declared: BTreeSet<usize> =
            property_names(schema).into_iter().flat_map(|name| self.fields.get(name)).copied().collect();
        declared.into_iter().collect()
    }

    fn rule_text(&self, rule: usize) -> &str {
        self.rules.get(rule).map_or("", |rule| rule.text.as_str())
    }
}

impl ThresholdRule {
    fn missing_field_detail(&self) -> String {
        format!("the tool declares {}, and the call does not have it", self.threshold.field)
    }

    fn violation<'a>(&self, guardrails: &'a Guardrails, detail: String) -> Violation<'a> {
        Violation { verdict: self.threshold.verdict, rule: guardrails.rule_text(self.rule), detail }
    }
}

#[cfg(test)]
mod tests;
