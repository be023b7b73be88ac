//! The lint of the texts with which conditions compare values, in particular those of named lists.

use super::finding::Finding;
use crate::condition::{ListUse, TextFault, text_fault, value_fault};
use bloomery_crds::lists;
use bloomery_crds::v1alpha1::SkillSpec;

/// Returns the findings about the texts of the lists. `uses` are those in all conditions. A list of a ConfigMap has no texts yet if
/// the ConfigMap was not read.
pub(super) fn findings(spec: &SkillSpec, uses: &[ListUse]) -> Vec<Finding> {
    let lists = spec.policy.iter().flat_map(|policy| &policy.lists);
    let mut findings = Vec::new();
    for (name, texts) in lists {
        let uses: Vec<&ListUse> = uses.iter().filter(|of| of.name == *name).collect();
        let path = format!("spec.policy.lists.{name}");
        if texts.is_empty() && !uses.is_empty() {
            let message = "the list is empty, so each comparison with it has the same result";
            findings.push(Finding::error(&path, message).hint("add a text, or remove the list from the conditions"));
        }
        let is_useless =
            !uses.is_empty() && texts.iter().all(|text| uses.iter().all(|of| impossible_value(text, of).is_some()));
        let faults = texts.iter().enumerate().filter_map(|(at, text)| Some((at, fault(text, &uses)?)));
        findings.extend(faults.map(|(at, fault)| {
            let is_certain = fault.is_certain || is_useless;
            text_finding(&format!("{path}[{at}]"), &TextFault { is_certain, ..fault })
        }));
    }
    findings
}

/// Warns of lists that no condition reads. `uses` are those in all conditions.
pub(super) fn unused(spec: &SkillSpec, uses: &[ListUse]) -> Vec<Finding> {
    let Some(policy) = &spec.policy else { return Vec::new() };
    let unused = lists::names(policy).filter(|name| uses.iter().all(|of| of.name != *name));
    let finding = |name: &str| {
        let message = "no condition reads the list, so it has no effect";
        let field = if policy.lists.contains_key(name) { "lists" } else { "listsFrom" };
        Finding::warning(format!("spec.policy.{field}.{name}"), message)
            .hint(format!("write a condition such as \"!(recipient in lists.{name})\""))
    };
    unused.map(finding).collect()
}

/// Returns the fault of a text that matches no value in any use of its list.
fn fault(text: &str, uses: &[&ListUse]) -> Option<TextFault> {
    let mut found = None;
    for of in uses {
        // Without a comparison, nothing is known about the use.
        of.comparisons.first()?;
        for (form, comparison) in &of.comparisons {
            let fault = text_fault(*form, text, *comparison).or_else(|| impossible_value(text, of))?;
            found = found.filter(|found: &TextFault| !found.is_certain).or(Some(fault));
        }
    }
    found
}

/// Returns the fault of a text that no schema of a compared argument lists. Another text of the list may be possible.
fn impossible_value(text: &str, of: &ListUse) -> Option<TextFault> {
    let is_known = of.values.len() == of.comparisons.len();
    let is_possible = of.values.iter().any(|(_, values)| values.contains(text));
    let (argument, values) = of.values.first().filter(|_| is_known && !is_possible)?;
    Some(TextFault { is_certain: false, ..value_fault(argument, text, values) })
}

/// Returns the finding about a text that an author probably does not mean.
pub(super) fn text_finding(path: &str, fault: &TextFault) -> Finding {
    let finding =
        if fault.is_certain { Finding::error(path, &fault.sentence) } else { Finding::warning(path, &fault.sentence) };
    match &fault.instead {
        Some(text) => finding.hint(format!("write {text:?}")),
        None => finding,
    }
}
