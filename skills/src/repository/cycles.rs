//! Finds skills that invoke each other in a circle.

use crate::finding::{Finding, FindingKind, Severity};
use bloomery_crds::subskills::{self, Cycle};
use std::collections::BTreeMap;

/// A subskill that a feature names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subskill {
    /// The name of its Skill.
    pub skill: String,
    /// The line of the feature's `subskill`.
    pub line: usize,
    /// The column.
    pub column: usize,
    /// The document path.
    pub path: String,
}

/// A Skill and its subskills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invoker {
    /// The path of its file.
    pub file: String,
    /// The kind and the name of the object, for findings in a file of several objects.
    pub object: Option<String>,
    /// Its subskills.
    pub subskills: Vec<Subskill>,
}

/// Returns an error for each cycle of subskills, with the file that closes it. `skills` are all Skills by name.
pub fn cycles(skills: &BTreeMap<String, Invoker>) -> Vec<(String, Finding)> {
    let subskills_of = |name: &str| -> Vec<String> {
        let subskills = skills.get(name).map(|invoker| invoker.subskills.as_slice()).unwrap_or_default();
        subskills.iter().map(|subskill| subskill.skill.clone()).collect()
    };
    let finding = |cycle: Cycle| {
        let invoker = skills.get(&cycle.closing)?;
        Some((invoker.file.clone(), closing(invoker, invoker.subskills.get(cycle.nth)?, &cycle)))
    };
    subskills::cycles(skills.keys().map(String::as_str), subskills_of).filter_map(finding).collect()
}

/// Returns the finding about the subskill that closes a cycle.
fn closing(invoker: &Invoker, subskill: &Subskill, cycle: &Cycle) -> Finding {
    Finding {
        line: subskill.line,
        column: subskill.column,
        severity: Severity::Error,
        object: invoker.object.clone(),
        path: subskill.path.clone(),
        message: format!("closes a cycle of subskills: {cycle}"),
        hint: Some("remove one of these subskills: a skill cannot wait for itself".to_owned()),
        kind: FindingKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    /// Returns the Skills of a text such as `a: b c; b:`.
    fn skills(text: &str) -> BTreeMap<String, Invoker> {
        let subskill =
            |name: &str| Subskill { skill: name.to_owned(), line: 7, column: 3, path: "features".to_owned() };
        let invoker = |skill: &str| {
            let (name, subskills) = skill.split_once(':').unwrap();
            let name = name.trim().to_owned();
            let subskills = subskills.split_whitespace().map(subskill).collect();
            (name.clone(), Invoker { file: format!("{name}/skill.json"), object: None, subskills })
        };
        text.split(';').map(invoker).collect()
    }

    #[rstest]
    #[case::itself("a: a", "a/skill.json:7 a -> a")]
    #[case::two("a: b; b: a", "b/skill.json:7 a -> b -> a")]
    #[case::two_cycles("a: b; b: a c; c: c", "b/skill.json:7 a -> b -> a; c/skill.json:7 c -> c")]
    #[case::a_missing_skill("a: b", "")]
    fn a_cycle_is_reported_in_the_file_that_closes_it(#[case] text: &str, #[case] expected: &str) {
        let shown = |(file, finding): &(String, Finding)| {
            let circle = finding.message.strip_prefix("closes a cycle of subskills: ").unwrap();
            format!("{file}:{} {circle}", finding.line)
        };
        let found: Vec<String> = cycles(&skills(text)).iter().map(shown).collect();
        assert_eq!(found.join("; "), expected);
    }
}
