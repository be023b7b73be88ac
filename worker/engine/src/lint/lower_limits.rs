//! Warns of upper limits without a lower one: a negative amount passes them.

use super::finding::Finding;
use super::guardrails::threshold;
use super::known_tools::KnownTools;
use crate::condition::{Condition, Dialect, Kinds, written};
use crate::rules::guardrail::{Comparison, Rule, Threshold};
use bloomery_crds::tool_pattern::matches;
use bloomery_crds::v1alpha1::SkillSpec;

pub(super) fn findings(spec: &SkillSpec, rules: &[(String, Rule)], known: &KnownTools) -> Vec<Finding> {
    let limits: Vec<Limit<'_>> = of_guardrails(rules).into_iter().chain(of_conditions(spec)).collect();
    let passes_negative =
        |limit: &&Limit<'_>| limit.is_upper && limit.number >= 0.0 && may_be_negative(limit, &limits, known);
    limits.iter().filter(passes_negative).map(Limit::finding).collect()
}

/// Returns whether a call of a tool that an upper limit names may have a negative number in the field, and no lower limit is about that
/// tool. What is not a number, or no argument at all, has findings of its own.
fn may_be_negative(upper: &Limit<'_>, limits: &[Limit<'_>], known: &KnownTools) -> bool {
    let field = upper.field.as_str();
    let lower = limits.iter().filter(|limit| !limit.is_upper && limit.field == field);
    let has_lower = |tool: &str| lower.clone().any(|limit| matches(limit.tool, tool));
    let mut of_tools =
        known.matching(upper.tool).filter_map(|(name, known)| Some((name, known, known.kinds(field)?))).peekable();
    if of_tools.peek().is_none() {
        return known.fields().is_empty() && !has_lower(upper.tool);
    }
    of_tools.any(|(name, known, kinds)| kinds.may_be(Kinds::NUMBER) && !known.is_positive(field) && !has_lower(name))
}

/// A comparison of a field with a number, in a rule that holds or denies calls.
struct Limit<'a> {
    path: String,
    /// The rule as written.
    text: &'a str,
    /// The tool that the rule names.
    tool: &'a str,
    field: String,
    /// Whether large values are held or denied. Otherwise, small ones are.
    is_upper: bool,
    number: f64,
    /// The instruction that adds the lower limit.
    remedy: String,
}

impl Limit<'_> {
    fn finding(&self) -> Finding {
        let Self { path, text, field, remedy, .. } = self;
        let message = format!("{text:?} has no lower limit: a negative {field} passes");
        Finding::warning(path, message).hint(format!("{remedy}, or give {field} a minimum in spec.tools[].inputs"))
    }
}

fn of_guardrails(rules: &[(String, Rule)]) -> Vec<Limit<'_>> {
    let mut found = Vec::new();
    for (path, rule) in rules {
        let Some(Threshold { field, operator, value, broken_when, .. }) = threshold(rule) else { continue };
        let is_more = matches!(operator, Comparison::MoreThan | Comparison::AtLeast);
        found.push(Limit {
            path: path.clone(),
            text: &rule.text,
            tool: "*",
            field: field.clone(),
            is_upper: is_more == *broken_when,
            number: value.as_f64().unwrap_or_default(),
            remedy: format!("add the rule \"{field} < 0\" under never"),
        });
    }
    found
}

fn of_conditions(spec: &SkillSpec) -> Vec<Limit<'_>> {
    let mut found = Vec::new();
    // A condition of a step holds no call for an amount.
    for written in written(spec).into_iter().filter(|written| written.dialect == Dialect::Call) {
        let Ok(condition) = Condition::compile(written.text) else { continue };
        for limit in condition.limits() {
            let field = limit.argument.to_owned();
            let more = if written.allows { format!("&& {field} >= 0") } else { format!("|| {field} < 0") };
            found.push(Limit {
                path: written.path.clone(),
                text: written.text,
                tool: written.tool,
                is_upper: limit.is_upper != written.allows,
                number: limit.number,
                remedy: format!("write \"{} {more}\"", written.text),
                field,
            });
        }
    }
    found
}
