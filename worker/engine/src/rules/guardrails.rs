//! The compiled guardrails of a Skill, and what they say of a call.

mod names;

use super::guardrail::{self, Effect, Rule, RuleList, Threshold};
use bloomery_crds::v1alpha1::Verdict;
use names::Names;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// The guardrails of a Skill, compiled against the tools of a Job and indexed by tool and by field: a decision looks
/// at the rules that can concern it, however many there are.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Guardrails {
    rules: Vec<Rule>,
    tools: BTreeMap<String, Vec<OnTool>>,
    fields: BTreeMap<String, Vec<usize>>,
    /// The keys of `fields`.
    field_names: Names,
    thresholds: Vec<OnField>,
    /// The thresholds whose field a tool's schema declares.
    declared: BTreeMap<String, Vec<usize>>,
}

/// What a guardrail says of a call that breaks it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation<'a> {
    /// Hold or Deny.
    pub verdict: Verdict,
    /// The rule as it was written.
    pub rule: &'a str,
    /// What of the call breaks it.
    pub detail: String,
}

#[derive(Debug, Clone, PartialEq)]
struct OnTool {
    rule: usize,
    verdict: Verdict,
}

#[derive(Debug, Clone, PartialEq)]
struct OnField {
    rule: usize,
    threshold: Threshold,
}

impl Guardrails {
    /// Compiles the rules against the catalogue: each tool's name and argument schema.
    pub fn compile<'t>(
        never: &[String],
        always: &[String],
        catalogue: impl IntoIterator<Item = (&'t str, &'t Value)>,
    ) -> Self {
        let catalogue: Vec<_> = catalogue.into_iter().collect();
        let names: BTreeSet<&str> = catalogue.iter().map(|(name, _)| *name).collect();
        let sides = [(RuleList::Never, never), (RuleList::Always, always)];
        let texts = sides.into_iter().flat_map(|(side, texts)| texts.iter().map(move |text| (side, text)));
        let mut compiled = Self::default();
        for (side, text) in texts {
            compiled.add(guardrail::compile(text, side, &names));
        }
        for (name, schema) in catalogue {
            let declared = compiled.declared_by(schema);
            if !declared.is_empty() {
                compiled.declared.insert(name.to_owned(), declared);
            }
        }
        compiled
    }

    /// All rules, in the order in which they were written: `never`, then `always`.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// What the guardrails say of a call: one finding for each rule that it breaks, none if it breaks none.
    ///
    /// A threshold concerns a call whose arguments hold its field, at any depth, or whose tool declares it. A declared
    /// field that is missing, or is no number, breaks the rule.
    pub fn violations(&self, tool: &str, arguments: &Value) -> Vec<Violation<'_>> {
        let named = self.tools.get(tool).into_iter().flatten().map(|on| Violation {
            verdict: on.verdict,
            rule: self.text(on.rule),
            detail: match on.verdict {
                Verdict::Hold => format!("{tool} needs approval"),
                Verdict::Allow | Verdict::Deny => format!("{tool} must not be used"),
            },
        });
        named.chain(self.broken_thresholds(tool, arguments)).collect()
    }

    fn broken_thresholds(&self, tool: &str, arguments: &Value) -> Vec<Violation<'_>> {
        if self.thresholds.is_empty() {
            return Vec::new();
        }
        let mut values: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
        let mut parts = vec![arguments];
        while let Some(part) = parts.pop() {
            match part {
                Value::Object(fields) => {
                    for (name, value) in fields {
                        if !self.on_field(name).is_empty() {
                            values.entry(name).or_default().push(value);
                        }
                        if value.is_object() || value.is_array() {
                            parts.push(value);
                        }
                    }
                }
                Value::Array(items) => parts.extend(items.iter().filter(|item| item.is_object() || item.is_array())),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        let declared = self.declared.get(tool).into_iter().flatten();
        let there = values.keys().flat_map(|name| self.on_field(name));
        let concerned: BTreeSet<usize> = declared.chain(there).copied().collect();
        let broken = |on: &OnField| match values.get(on.threshold.field.as_str()) {
            Some(values) => values.iter().find_map(|value| on.threshold.broken_by(value)),
            None => Some(on.missing()),
        };
        let concerned = concerned.into_iter().filter_map(|at| self.thresholds.get(at));
        concerned.filter_map(|on| Some(on.finding(self, broken(on)?))).collect()
    }

    fn add(&mut self, rule: Rule) {
        let at = self.rules.len();
        for effect in &rule.effects {
            match effect {
                Effect::ToolDeny { tool } => self.on_tool(tool, OnTool { rule: at, verdict: Verdict::Deny }),
                Effect::RequiresApproval { tool } => self.on_tool(tool, OnTool { rule: at, verdict: Verdict::Hold }),
                Effect::Threshold(threshold) => {
                    self.field_names.insert(&threshold.field);
                    self.fields.entry(threshold.field.clone()).or_default().push(self.thresholds.len());
                    self.thresholds.push(OnField { rule: at, threshold: threshold.clone() });
                }
            }
        }
        self.rules.push(rule);
    }

    /// The thresholds of a field.
    fn on_field(&self, name: &str) -> &[usize] {
        if self.field_names.may_hold(name) { self.fields.get(name).map_or(&[], Vec::as_slice) } else { &[] }
    }

    fn on_tool(&mut self, tool: &str, on: OnTool) {
        self.tools.entry(tool.to_owned()).or_default().push(on);
    }

    /// The thresholds whose field is a property anywhere in a schema.
    fn declared_by(&self, schema: &Value) -> Vec<usize> {
        let mut declared = BTreeSet::new();
        let mut parts = vec![schema];
        while let Some(part) = parts.pop() {
            match part {
                Value::Object(fields) => {
                    if let Some(Value::Object(properties)) = fields.get("properties") {
                        declared.extend(properties.keys().flat_map(|name| self.on_field(name)).copied());
                    }
                    parts.extend(fields.values());
                }
                Value::Array(items) => parts.extend(items),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
            }
        }
        declared.into_iter().collect()
    }

    fn text(&self, rule: usize) -> &str {
        self.rules.get(rule).map_or("", |rule| rule.text.as_str())
    }
}

impl OnField {
    fn missing(&self) -> String {
        format!("the tool declares {}, and the call lacks it", self.threshold.field)
    }

    fn finding<'a>(&self, of: &'a Guardrails, detail: String) -> Violation<'a> {
        Violation { verdict: self.threshold.verdict, rule: of.text(self.rule), detail }
    }
}

#[cfg(test)]
mod tests;
