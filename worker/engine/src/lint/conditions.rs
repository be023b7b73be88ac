//! The lint of conditions. They are compiled as in the worker, and their arguments are compared, by name and by type, with those of
//! the tools that the rule names.

use super::facts;
use super::finding::Finding;
use super::known_tools::KnownTools;
use super::lists;
use super::unmatched;
use crate::condition::{
    Condition, Defect, Dialect, Earlier, Examination, Kinds, ListUse, Macro, OneItem, Shape, Signature, TextFault,
    Written, WrittenValue, written,
};
use bloomery_crds::v1alpha1::SkillSpec;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn findings(spec: &SkillSpec, known: &KnownTools) -> Vec<Finding> {
    let mut list_uses = Vec::new();
    // Each pattern is looked up once, and not for each tool of each rule.
    let merged: RefCell<BTreeMap<String, Shape>> = RefCell::default();
    let earlier = |earlier: Earlier, tool: &str| {
        let key = format!("{earlier}('{tool}')");
        merged.borrow_mut().entry(key).or_insert_with(|| known.earlier(earlier, tool)).clone()
    };
    let mut findings: Vec<Finding> =
        written(spec).iter().flat_map(|written| check(written, spec, known, &earlier, &mut list_uses)).collect();
    findings.extend(lists::findings(spec, &list_uses));
    findings.extend(lists::unused(spec, &list_uses));
    findings
}

/// Checks a condition. Adds its uses of named lists to `list_uses`.
fn check(
    written: &Written<'_>,
    spec: &SkillSpec,
    known: &KnownTools,
    earlier: &dyn Fn(Earlier, &str) -> Shape,
    list_uses: &mut Vec<ListUse>,
) -> Vec<Finding> {
    let path = written.path.as_str();
    let Ok(condition) = Condition::compile_as(written.text, written.dialect) else {
        let finding = |fault| Finding::error(path, format!("the condition cannot be compiled: {fault}"));
        return Condition::faults(written.text, written.dialect).into_iter().map(finding).collect();
    };
    let tools: Vec<(&str, &Signature)> = known.matching(written.tool).collect();
    // Without a known tool, any argument may have any type.
    let nothing = Signature::default();
    let signatures = if tools.is_empty() { vec![&nothing] } else { tools.iter().map(|(_, known)| *known).collect() };
    let mut findings: Vec<Finding> = Vec::new();
    let mut examined: Vec<Examination> = Vec::new();
    for &signature in &signatures {
        let mut examination = condition.examine(signature, written.tool, earlier, written.allows);
        for defect in examination.defects.drain(..) {
            let finding = defect_finding(path, defect, &condition, signature);
            // Several tools of a pattern may have the same arguments.
            if findings.iter().all(|found| found.message != finding.message) {
                findings.push(finding);
            }
        }
        list_uses.append(&mut examination.list_uses);
        examined.push(examination);
    }
    findings.extend(constant(written, &condition));
    findings.extend(exclusive(written, &condition));
    findings.extend(never_missing(written, &condition, &signatures));
    findings.extend(unknown_arguments(written, &condition, &tools, spec, known));
    findings.extend(unknown_fields(written, &examined, known));
    findings.extend(impossible_values(path, &examined));
    findings.extend(other_kinds(path, &examined));
    findings.extend(vacuous(written, &condition));
    findings.extend(one_item(written, &condition));
    findings.extend(unanchored(written, &condition));
    findings.extend(facts::findings(written, &condition, spec, known));
    findings
}

/// Warns of a condition that does not depend on the call.
fn constant(written: &Written<'_>, condition: &Condition) -> Option<Finding> {
    let truth = condition.constant()?;
    let consequence = match (truth, written.dialect, written.allows) {
        (true, Dialect::Step, _) => "every call meets it",
        (false, Dialect::Step, _) => "no call meets it",
        (true, _, true) => "the rule allows every call",
        (false, _, true) => "the rule allows no call",
        (true, _, false) => "the rule applies to every call",
        (false, _, false) => "the rule applies to no call",
    };
    Some(Finding::warning(&written.path, format!("the condition is always {truth}: {consequence}")))
}

/// Finds comparisons that exclude each other, and sizes below 0, so that a part of the condition does not depend on the call.
fn exclusive(written: &Written<'_>, condition: &Condition) -> Vec<Finding> {
    let finding = |(name, truth): (Option<String>, bool)| {
        let value = name.as_deref().unwrap_or("a value");
        let message =
            format!("a part of the condition is constant: because of the comparisons of {value}, it is always {truth}");
        let (instead, rule) = if truth { ("&&", "all of them must hold") } else { ("||", "one of them is enough") };
        Finding::error(&written.path, message).hint(format!("write {instead} between the comparisons if {rule}"))
    };
    let of_size = |truth: bool| {
        let message = format!("a part of the condition is constant: a size is never negative, so it is always {truth}");
        Finding::error(&written.path, message)
            .hint("write size(...) == 0 for an empty value, and size(...) > 0 for another")
    };
    let sizes = condition.constant_sizes().into_iter().map(of_size);
    condition.exclusive_comparisons().into_iter().map(finding).chain(sizes).collect()
}

/// Finds `!has()` of an argument that every call has. It is an error if the rule holds and denies no call because of it.
fn never_missing(written: &Written<'_>, condition: &Condition, tools: &[&Signature]) -> Vec<Finding> {
    let found = condition.never_missing(tools);
    let holds_nothing = found.is_never_true && !written.allows;
    let finding = |name: &str| {
        let message = format!("!has(args.{name}) is always false: every call has the required argument {name:?}");
        let finding = if holds_nothing {
            Finding::error(&written.path, message)
        } else {
            Finding::warning(&written.path, message)
        };
        finding.hint(format!("remove it, or compare the value of {name}"))
    };
    found.arguments.into_iter().map(finding).collect()
}

/// Warns of patterns that let a call pass if any part of an argument matches.
fn unanchored(written: &Written<'_>, condition: &Condition) -> Vec<Finding> {
    let finding = |pattern: String| {
        let message = format!(
            "the pattern {pattern:?} also matches a longer text that contains a match, and then the call passes"
        );
        Finding::warning(&written.path, message)
            .hint("write ^ at the beginning of the pattern, or (^|[.]) for a host and its subdomains, and $ at its end")
    };
    condition.passing_by_a_part(written.allows).into_iter().map(finding).collect()
}

/// Finds the fields within arguments and results that do not exist. A condition about such a field may never be true.
fn unknown_fields(written: &Written<'_>, examined: &[Examination], known: &KnownTools) -> Vec<Finding> {
    let Written { path, tool, .. } = written;
    let is_possible = |field: &str| examined.iter().any(|of_tool| of_tool.possible_fields.contains(field));
    let mut seen = BTreeSet::new();
    let mut findings = Vec::new();
    for (field, names) in examined.iter().flat_map(|of_tool| &of_tool.unknown_fields) {
        if is_possible(field) || !seen.insert(field) {
            continue;
        }
        let of_result = is_of_result(written, field);
        let message = if of_result {
            format!("no output schema names the field {field:?}")
        } else {
            format!("no tool that {tool:?} matches has a field {field:?}")
        };
        let finding = if known.is_complete() { Finding::error(path, message) } else { Finding::warning(path, message) };
        let name = field.rsplit('.').next().unwrap_or_default();
        let finding = finding.nearest(name, names.iter().map(String::as_str));
        findings.push(if of_result && finding.hint.is_none() {
            let names = names.join(", ");
            finding.hint(format!(
                "name one of {names}; if the schema accepts other fields, declare the field in `output` of the tool in spec.tools"
            ))
        } else {
            finding
        });
    }
    findings
}

/// Returns whether a field is that of a result, and not of the arguments of a call.
fn is_of_result(written: &Written<'_>, field: &str) -> bool {
    field.starts_with("results(")
        || written.dialect == Dialect::Step && field.split(['.', '[']).any(|part| part == "result")
}

/// Finds the texts and numbers that an argument has in no tool of the rule. Of a list, another item may be possible.
fn impossible_values(path: &str, examined: &[Examination]) -> Vec<Finding> {
    let is_possible = |value: &WrittenValue| examined.iter().any(|of_tool| of_tool.possible_values.contains(value));
    let has_possible = |written: &WrittenValue| {
        let mut possible = examined.iter().flat_map(|of_tool| &of_tool.possible_values);
        possible.any(|other| (&other.path, &other.values) == (&written.path, &written.values))
    };
    let faults: BTreeMap<_, _> = examined.iter().flat_map(|of_tool| &of_tool.impossible_values).collect();
    let impossible = faults.into_iter().filter(|(written, _)| !is_possible(written));
    let finding = |(written, fault): (&WrittenValue, &TextFault)| {
        lists::text_finding(path, &TextFault { is_certain: !has_possible(written), ..fault.clone() })
    };
    impossible.map(finding).collect()
}

/// Warns of values that may have a type with which no comparison is true, so that the call passes.
fn other_kinds(path: &str, examined: &[Examination]) -> Vec<Finding> {
    let compared = examined.iter().flat_map(|of_tool| &of_tool.compared_kinds);
    let passing: BTreeMap<&String, Kinds> =
        compared.filter_map(|(value, kinds)| Some((value, kinds.passing()?))).collect();
    let finding = |(value, kinds): (&String, Kinds)| {
        let message = format!("{value} may also be {kinds}, and then the comparison lets the call pass");
        Finding::warning(path, message).hint(format!(
            "compare {value} with each type that it may have, or declare one type for the argument in spec.tools[].inputs"
        ))
    };
    passing.into_iter().map(finding).collect()
}

/// Warns of `all()` over earlier calls or results that lets a call pass if there are none.
fn vacuous(written: &Written<'_>, condition: &Condition) -> Vec<Finding> {
    let allowing = condition.allowing_without_items(written.allows);
    let more = if written.allows { "size() > 0 &&" } else { "size() == 0 ||" };
    let finding = |(earlier, tool): (Earlier, &str)| {
        let message = format!("{earlier}('{tool}').all(...) is also true if there are none");
        Finding::warning(&written.path, message).hint(format!("write {earlier}('{tool}').{more} before the condition"))
    };
    allowing.into_iter().map(finding).collect()
}

/// Warns of conditions that let a call pass because of one item of a list, whatever the other items are.
fn one_item(written: &Written<'_>, condition: &Condition) -> Vec<Finding> {
    let not = if written.allows { "" } else { "!" };
    let finding = |OneItem { list, by }: OneItem| {
        let enough = || format!("one item of {list} lets the call pass, whatever the other items are");
        let each = || format!("check each item: {not}{list}.all(it, ...)");
        let (message, hint) = match by {
            Some(Macro::All) => (enough(), "write exists() in place of all()".to_owned()),
            Some(Macro::Exists) => (enough(), "write all() in place of exists()".to_owned()),
            Some(Macro::ExistsOne) => (format!("exists_one() is false if it is true for two items of {list}"), each()),
            Some(_) => (enough(), each()),
            None => (format!("only one item of {list} is checked, and a call may have more"), each()),
        };
        Finding::warning(&written.path, message).hint(hint)
    };
    condition.passing_by_one_item(written.allows).into_iter().map(finding).collect()
}

/// Finds the arguments that no tool of the rule has.
fn unknown_arguments(
    Written { path, tool, .. }: &Written<'_>,
    condition: &Condition,
    tools: &[(&str, &Signature)],
    spec: &SkillSpec,
    known: &KnownTools,
) -> Vec<Finding> {
    if tools.is_empty() {
        return Vec::new();
    }
    let finding = |name: &str| {
        if tools.iter().any(|(_, signature)| signature.may_have(name)) {
            return unmatched::unnamed_argument(path, name, tools, spec, known);
        }
        let finding = if known.is_complete() {
            let message = format!("no tool that {tool:?} matches has an argument {name:?}");
            Finding::error(path, message)
        } else {
            let message =
                format!("{tool} declares no input {name:?}: if the MCP server lists none either, no Job begins");
            Finding::warning(path, message)
        };
        Some(finding.nearest(name, tools.iter().flat_map(|(_, signature)| signature.names())))
    };
    condition.arguments().into_iter().filter_map(finding).collect()
}

fn defect_finding(path: &str, defect: Defect, condition: &Condition, signature: &Signature) -> Finding {
    let finding = match defect {
        Defect::Undecidable(reason) => Finding::error(path, format!("the condition never has a result: {reason}")),
        Defect::Constant(part) => Finding::error(path, format!("a part of the condition is constant: {part}")),
        Defect::Text(fault) => return lists::text_finding(path, &fault),
    };
    let named = condition.arguments().into_iter();
    let kinds: Vec<String> = named.filter_map(|name| Some(format!("{name} is {}", signature.kinds(name)?))).collect();
    if kinds.is_empty() {
        finding.hint("a condition must be true or false and compare values of one kind, such as \"amount > 500\"")
    } else {
        finding.hint(kinds.join(", "))
    }
}
