//! Warns of upper limits without a lower one: a negative amount passes them.

use super::finding::Finding;
use super::guardrails::threshold;
use super::known_tools::KnownTools;
use crate::condition::{Condition, Dialect, Kinds, Signature, Written, written};
use crate::rules::guardrail::{Comparison, Rule, Threshold};
use bloomery_crds::tool_pattern::matches;
use bloomery_crds::v1alpha1::SkillSpec;

pub(super) fn findings(spec: &SkillSpec, rules: &[(String, Rule)], known: &KnownTools) -> Vec<Finding> {
    let limits: Vec<Limit<'_>> =
        of_guardrails(rules).into_iter().chain(of_conditions(spec)).chain(of_inputs(spec)).collect();
    let passes_negative =
        |limit: &&Limit<'_>| limit.is_upper && limit.number >= 0.0 && may_be_negative(limit, &limits, known);
    limits.iter().filter(passes_negative).map(Limit::finding).collect()
}

/// Returns whether a call of a tool that an upper limit names may have a negative number in the field, and no lower limit is about that
/// tool. What is not a number, or no argument at all, has findings of its own.
fn may_be_negative(upper: &Limit<'_>, limits: &[Limit<'_>], known: &KnownTools) -> bool {
    let field = upper.field.as_str();
    let (argument, name) = (field.split(['.', '[']).next(), field.rsplit('.').next());
    let is_about =
        |limit: &&Limit<'_>| limit.field == field || limit.is_at_any_depth && name == Some(limit.field.as_str());
    let lower = limits.iter().filter(|limit| !limit.is_upper).filter(is_about);
    let has_lower = |tool: &str| lower.clone().any(|limit| matches(limit.tool, tool));
    let of_tool = |(tool, known): (_, &Signature)| {
        let names_argument = argument.is_some_and(|argument| known.names_argument(argument));
        Some((tool, known.fields().part(field).filter(|_| names_argument)?))
    };
    let mut of_tools = known.matching(upper.tool).filter_map(of_tool).peekable();
    if of_tools.peek().is_none() {
        return known.fields().is_empty() && !has_lower(upper.tool);
    }
    of_tools.any(|(tool, part)| part.kinds.may_be(Kinds::NUMBER) && !part.is_positive && !has_lower(tool))
}

/// A comparison of a field with a number, in a rule that holds or denies calls.
struct Limit<'a> {
    path: String,
    /// The rule as written.
    text: String,
    /// The tool that the rule names.
    tool: &'a str,
    /// The argument, or the part of one, such as `payment.amount` or `lines[].price`.
    field: String,
    /// Whether the rule is also about parts of arguments with the name of the field.
    is_at_any_depth: bool,
    /// Whether large values are held or denied. Otherwise, small ones are.
    is_upper: bool,
    number: f64,
    /// The instructions that add the lower limit.
    remedy: String,
}

impl Limit<'_> {
    fn finding(&self) -> Finding {
        let Self { path, text, field, remedy, .. } = self;
        let message = format!("{text:?} has no lower limit: a negative {field} passes");
        Finding::warning(path, message).hint(remedy)
    }
}

fn of_guardrails(rules: &[(String, Rule)]) -> Vec<Limit<'_>> {
    let mut found = Vec::new();
    for (path, rule) in rules {
        let Some(Threshold { field, operator, value, broken_when, .. }) = threshold(rule) else { continue };
        let is_more = matches!(operator, Comparison::MoreThan | Comparison::AtLeast);
        found.push(Limit {
            path: path.clone(),
            text: rule.text.clone(),
            tool: "*",
            field: field.clone(),
            is_at_any_depth: true,
            is_upper: is_more == *broken_when,
            number: value.as_f64().unwrap_or_default(),
            remedy: format!(
                "add the rule \"{field} < 0\" under never, or give {field} a minimum in spec.tools[].inputs"
            ),
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
            found.push(Limit {
                path: written.path.clone(),
                text: written.text.to_owned(),
                tool: written.tool,
                is_at_any_depth: false,
                is_upper: limit.is_upper != written.allows,
                number: limit.number,
                remedy: remedy(&written, &limit.argument),
                field: limit.argument,
            });
        }
    }
    found
}

/// Returns the instructions that add a lower limit to a condition. Within an argument, `inputs` have no minimum.
fn remedy(written: &Written<'_>, field: &str) -> String {
    if field.contains(['.', '[']) {
        return format!("compare {field} also with 0, where it is compared with the upper limit");
    }
    let more = if written.allows { format!("&& {field} >= 0") } else { format!("|| {field} < 0") };
    format!("write \"{} {more}\", or give {field} a minimum in spec.tools[].inputs", written.text)
}

/// Returns the upper limits of inputs that have no lower one.
fn of_inputs(spec: &SkillSpec) -> Vec<Limit<'_>> {
    let mut found = Vec::new();
    for (at, declared) in spec.tools.iter().enumerate() {
        for (nth, input) in declared.inputs.iter().enumerate().filter(|(_, input)| input.minimum.is_none()) {
            let Some(maximum) = &input.maximum else { continue };
            found.push(Limit {
                path: format!("spec.tools[{at}].inputs[{nth}].maximum"),
                text: format!("maximum: {maximum}"),
                tool: &declared.name,
                field: input.name.clone(),
                is_at_any_depth: false,
                is_upper: true,
                number: maximum.as_f64().unwrap_or_default(),
                remedy: "write a minimum too, such as minimum: 0".to_owned(),
            });
        }
    }
    found
}
