//! Warns of rules that hold or deny a call because people wrote a value: values from elsewhere, such as a mail, pass.

use super::finding::Finding;
use crate::condition::{Condition, Dialect, Source, Written, written};
use bloomery_crds::tool_pattern::matches;
use bloomery_crds::v1alpha1::SkillSpec;
use std::collections::BTreeMap;

/// A rule that holds or denies calls, and the sources of values that it asks for.
type Rule<'a> = (Written<'a>, Vec<Source>);

/// Returns the findings. A rule about a value is meant if another rule about the tool is true for values from elsewhere, or if its
/// condition also asks whether another value comes from elsewhere. A rule with `fromTool` may mean a tool whose results are not trusted.
pub(super) fn findings(spec: &SkillSpec) -> Vec<Finding> {
    let holding = written(spec).into_iter().filter(|written| written.dialect == Dialect::Call && !written.allows);
    let rules: Vec<Rule<'_>> = holding
        .filter_map(|written| Condition::compile(written.text).ok().map(|condition| (written, condition.sources())))
        .collect();
    // The rules that are true for a value from elsewhere, by the value.
    let mut protecting: BTreeMap<&str, Vec<(usize, &str)>> = BTreeMap::new();
    for (at, (written, sources)) in rules.iter().enumerate() {
        for value in sources.iter().filter(|source| source.is_negated).filter_map(|source| source.value.as_deref()) {
            protecting.entry(value).or_default().push((at, written.tool));
        }
    }
    let is_protected = |at: usize, tool: &str, value: &str| {
        let mut others = protecting.get(value).into_iter().flatten().filter(|(other, _)| *other != at);
        others.any(|(_, named)| matches(named, tool) || matches(tool, named))
    };
    let finding = |(at, (written, sources)): (usize, &Rule<'_>)| {
        let mut values = sources.iter().filter(|source| source.is_user && !source.is_negated);
        let value = values.find_map(|source| {
            let value = source.value.as_deref()?;
            let is_meant = asks_for_another(sources, value) || is_protected(at, written.tool, value);
            (!is_meant).then_some(value)
        })?;
        let message = format!("the rule applies if people wrote {value}, and a value from elsewhere passes");
        Some(Finding::warning(&written.path, message).hint(remedy(value)))
    };
    rules.iter().enumerate().filter_map(finding).collect()
}

/// Returns whether a condition also asks whether another value comes from elsewhere.
fn asks_for_another(sources: &[Source], value: &str) -> bool {
    sources.iter().any(|source| source.is_negated && source.value.as_deref() != Some(value))
}

/// Returns the instruction that turns the condition round.
fn remedy(value: &str) -> String {
    match value.split_once("[]") {
        None => format!("write !fromUser({value})"),
        Some((list, field)) if !field.contains("[]") => format!("write !{list}.all(it, fromUser(it{field}))"),
        Some(_) => "write ! before fromUser()".to_owned(),
    }
}
