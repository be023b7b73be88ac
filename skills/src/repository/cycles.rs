//! Finds skills that invoke each other in a circle.

use crate::finding::{Finding, FindingKind, Severity};
use std::collections::BTreeMap;

/// The largest number of Skills of a cycle that are shown.
const MAX_SHOWN: usize = 8;

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
    /// Its subskills.
    pub subskills: Vec<Subskill>,
}

/// Returns an error for each cycle of subskills, with the file that closes it. `skills` are all Skills by name.
pub fn cycles(skills: &BTreeMap<String, Invoker>) -> Vec<(String, Finding)> {
    let mut found = Vec::new();
    // False while the subskills of a Skill are followed, and true afterwards.
    let mut is_done: BTreeMap<&str, bool> = BTreeMap::new();
    for start in skills.keys() {
        if is_done.contains_key(start.as_str()) {
            continue;
        }
        // Each Skill on the way from the start, with the number of its subskills that were followed.
        let mut way: Vec<(&str, usize)> = vec![(start.as_str(), 0)];
        is_done.insert(start.as_str(), false);
        while let Some((name, followed)) = way.last_mut() {
            let (name, nth) = (*name, *followed);
            *followed += 1;
            let invoker = skills.get(name);
            let next = invoker.and_then(|invoker| Some((invoker, invoker.subskills.get(nth)?)));
            let Some((invoker, subskill)) = next else {
                is_done.insert(name, true);
                way.pop();
                continue;
            };
            match is_done.get(subskill.skill.as_str()) {
                None => {
                    is_done.insert(subskill.skill.as_str(), false);
                    way.push((subskill.skill.as_str(), 0));
                }
                Some(false) => found.push((invoker.file.clone(), cycle(&way, subskill))),
                Some(true) => {}
            }
        }
    }
    found
}

/// Returns the finding about a subskill that is already on the way to it.
fn cycle(way: &[(&str, usize)], subskill: &Subskill) -> Finding {
    let names = way.iter().map(|(name, _)| *name).skip_while(|name| *name != subskill.skill);
    let mut circle: Vec<&str> = names.chain([subskill.skill.as_str()]).collect();
    if circle.len() > MAX_SHOWN {
        circle.splice(MAX_SHOWN / 2..circle.len() - MAX_SHOWN / 2, ["..."]);
    }
    Finding {
        line: subskill.line,
        column: subskill.column,
        severity: Severity::Error,
        object: None,
        path: subskill.path.clone(),
        message: format!("closes a cycle of subskills: {}", circle.join(" -> ")),
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
            (name.clone(), Invoker { file: format!("{name}/skill.json"), subskills })
        };
        text.split(';').map(invoker).collect()
    }

    #[rstest]
    #[case::none("a: b c; b: c; c:", "")]
    #[case::itself("a: a", "a/skill.json:7 a -> a")]
    #[case::two("a: b; b: a", "b/skill.json:7 a -> b -> a")]
    #[case::behind_others("a: b; b: c; c: d; d: b", "d/skill.json:7 b -> c -> d -> b")]
    #[case::two_cycles("a: b; b: a c; c: c", "b/skill.json:7 a -> b -> a; c/skill.json:7 c -> c")]
    #[case::a_missing_skill("a: b", "")]
    fn each_cycle_is_found_once(#[case] text: &str, #[case] expected: &str) {
        let shown = |(file, finding): &(String, Finding)| {
            let circle = finding.message.strip_prefix("closes a cycle of subskills: ").unwrap();
            format!("{file}:{} {circle}", finding.line)
        };
        let found: Vec<String> = cycles(&skills(text)).iter().map(shown).collect();
        assert_eq!(found.join("; "), expected);
    }

    #[test]
    fn the_middle_of_a_long_cycle_is_not_shown() {
        let circle: Vec<String> = (0..100).map(|nth| format!("s{nth:02}: s{:02}", (nth + 1) % 100)).collect();
        let found = cycles(&skills(&circle.join(";")));
        let [(_, finding)] = found.as_slice() else { panic!("{found:?}") };
        assert!(finding.message.ends_with("s00 -> s01 -> s02 -> s03 -> ... -> s97 -> s98 -> s99 -> s00"), "{finding}");
    }

    #[test]
    fn a_long_chain_is_followed_without_recursion() {
        let chain: Vec<String> = (0..20_000).map(|nth| format!("s{nth:05}: s{:05}", nth + 1)).collect();
        assert_eq!(cycles(&skills(&chain.join(";"))), []);
    }
}
