//! Subskills: the Skills that the features of other Skills name (`ext.subskill`).

use crate::children::EVERY_SKILL;
use crate::v1alpha1::{Feature, SkillSpec};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::iter::Enumerate;

/// The largest number of names of a cycle that are shown.
const MAX_SHOWN: usize = 8;

/// Returns the subskills of a Skill, in the order of its features.
pub fn of_features(spec: &SkillSpec) -> impl Iterator<Item = &str> {
    spec.features.iter().filter_map(Feature::subskill)
}

/// Returns the names of all Skills that a Skill names: its subskills, and the entries of `spec.skills`.
pub fn named(spec: &SkillSpec) -> BTreeSet<&str> {
    let allowed = spec.skills.iter().map(String::as_str).filter(|name| *name != EVERY_SKILL);
    of_features(spec).chain(allowed).collect()
}

/// A cycle of Skills, each of which has the next one as a subskill. It is displayed as `a -> b -> a`, without the middle of a long cycle.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cycle {
    /// The first Skill of the cycle, which is also the last.
    pub start: String,
    /// The Skill whose subskill closes the cycle.
    pub closing: String,
    /// The position of that subskill among the subskills of `closing`.
    pub nth: usize,
    text: String,
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// Returns the cycles that the subskills of the Skills `starts` lead to. Each subskill that closes a cycle is reported once, with one
/// cycle. `subskills_of` returns the subskills of a Skill; none if there is no such Skill.
pub fn cycles<'a>(
    starts: impl IntoIterator<Item = &'a str>,
    subskills_of: impl Fn(&str) -> Vec<String>,
) -> impl Iterator<Item = Cycle> {
    Walk { starts: starts.into_iter(), subskills_of, way: Vec::new(), reached: BTreeMap::new() }
}

/// Returns a cycle that contains the Skill `name`, and begins at it. `subskills_of` is that of [`cycles`].
pub fn cycle_through(name: &str, subskills_of: impl Fn(&str) -> Vec<String>) -> Option<Cycle> {
    cycles([name], subskills_of).find(|cycle| cycle.start == name)
}

/// A walk along the subskills of Skills, depth first. It takes no recursion: a chain of subskills has no largest length.
struct Walk<S, F> {
    starts: S,
    subskills_of: F,
    /// The Skills from a start to the one whose subskills are followed.
    way: Vec<Step>,
    /// The position on the way of each Skill that was reached; none once all of its subskills were followed.
    reached: BTreeMap<String, Option<usize>>,
}

/// A Skill on the way, with its subskills that were not followed yet.
struct Step {
    skill: String,
    subskills: Enumerate<<Vec<String> as IntoIterator>::IntoIter>,
}

impl<S, F: Fn(&str) -> Vec<String>> Walk<S, F> {
    fn enter(&mut self, skill: String) {
        self.reached.insert(skill.clone(), Some(self.way.len()));
        let subskills = (self.subskills_of)(&skill).into_iter().enumerate();
        self.way.push(Step { skill, subskills });
    }

    /// Returns the cycle from the Skill at this position of the way to itself.
    fn cycle_from(&self, at: usize, nth: usize) -> Option<Cycle> {
        let circle = self.way.get(at..)?;
        let (start, closing) = (circle.first()?, circle.last()?);
        let (head, tail) = circle.split_at(circle.len().min(MAX_SHOWN / 2));
        let hidden = tail.len().saturating_sub(MAX_SHOWN / 2 - 1);
        let mut shown: Vec<&str> = head.iter().map(|step| step.skill.as_str()).collect();
        if hidden > 0 {
            shown.push("...");
        }
        shown.extend(tail.iter().skip(hidden).map(|step| step.skill.as_str()));
        shown.push(&start.skill);
        Some(Cycle { start: start.skill.clone(), closing: closing.skill.clone(), nth, text: shown.join(" -> ") })
    }
}

impl<'a, S, F> Iterator for Walk<S, F>
where
    S: Iterator<Item = &'a str>,
    F: Fn(&str) -> Vec<String>,
{
    type Item = Cycle;

    fn next(&mut self) -> Option<Cycle> {
        loop {
            let Some(step) = self.way.last_mut() else {
                let start = self.starts.next()?;
                if !self.reached.contains_key(start) {
                    self.enter(start.to_owned());
                }
                continue;
            };
            let Some((nth, subskill)) = step.subskills.next() else {
                self.reached.insert(std::mem::take(&mut step.skill), None);
                self.way.pop();
                continue;
            };
            match self.reached.get(&subskill).copied() {
                None => self.enter(subskill),
                Some(Some(at)) => return self.cycle_from(at, nth),
                Some(None) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    /// Returns the subskills of the Skills of a text such as `a: b c; b:`.
    fn skills(text: &str) -> BTreeMap<String, Vec<String>> {
        let read = |skill: &str| {
            let (name, subskills) = skill.split_once(':').unwrap();
            (name.trim().to_owned(), subskills.split_whitespace().map(str::to_owned).collect())
        };
        text.split(';').map(read).collect()
    }

    fn found(skills: &BTreeMap<String, Vec<String>>) -> Vec<Cycle> {
        let subskills_of = |name: &str| skills.get(name).cloned().unwrap_or_default();
        cycles(skills.keys().map(String::as_str), subskills_of).collect()
    }

    #[rstest]
    #[case::none("a: b c; b: c; c:", "")]
    #[case::itself("a: a", "a.0 a -> a")]
    #[case::two("a: b; b: a", "b.0 a -> b -> a")]
    #[case::behind_others("a: b; b: c; c: d; d: b", "d.0 b -> c -> d -> b")]
    #[case::two_cycles("a: b; b: c a; c: c", "c.0 c -> c, b.1 a -> b -> a")]
    #[case::a_missing_skill("a: b", "")]
    fn each_cycle_is_found_once(#[case] text: &str, #[case] expected: &str) {
        let shown = |cycle: &Cycle| format!("{}.{} {cycle}", cycle.closing, cycle.nth);
        assert_eq!(found(&skills(text)).iter().map(shown).collect::<Vec<_>>().join(", "), expected);
    }

    #[rstest]
    #[case::itself("a: a", Some("a -> a"))]
    #[case::of_the_skill("a: b; b: c; c: a", Some("a -> b -> c -> a"))]
    #[case::of_the_skill_behind_another_cycle("a: b; b: b c; c: a", Some("a -> b -> c -> a"))]
    #[case::of_other_skills("a: b; b: c; c: b", None)]
    #[case::none("a: b; b:", None)]
    fn a_cycle_through_a_skill_begins_at_it(#[case] text: &str, #[case] expected: Option<&str>) {
        let skills = skills(text);
        let cycle = cycle_through("a", |name| skills.get(name).cloned().unwrap_or_default());
        assert_eq!(cycle.map(|cycle| cycle.to_string()).as_deref(), expected);
    }

    #[rstest]
    #[case::short(7, "s00 -> s01 -> s02 -> s03 -> s04 -> s05 -> s06 -> s00")]
    #[case::long(8, "s00 -> s01 -> s02 -> s03 -> ... -> s05 -> s06 -> s07 -> s00")]
    #[case::longer(100, "s00 -> s01 -> s02 -> s03 -> ... -> s97 -> s98 -> s99 -> s00")]
    fn the_middle_of_a_long_cycle_is_not_shown(#[case] length: usize, #[case] expected: &str) {
        let circle: Vec<String> = (0..length).map(|nth| format!("s{nth:02}: s{:02}", (nth + 1) % length)).collect();
        let found = found(&skills(&circle.join(";")));
        assert_eq!(found.iter().map(ToString::to_string).collect::<Vec<_>>(), [expected]);
    }

    #[test]
    fn a_long_chain_is_followed_without_recursion() {
        let chain: Vec<String> = (0..20_000).map(|nth| format!("s{nth:05}: s{:05}", nth + 1)).collect();
        assert_eq!(found(&skills(&chain.join(";"))), []);
    }

    #[test]
    fn the_named_skills_are_those_of_features_and_those_that_it_may_invoke() {
        let feature = |subskill: &str| json!({"name": subskill, "testScenario": "x", "expectedResult": "y", "ext": {"subskill": subskill}});
        let spec = json!({
            "problem": {"statement": "x"}, "skills": ["*", "other", "find"], "features": [feature("list"), feature("find")],
        });
        let spec: SkillSpec = serde_json::from_value(spec).unwrap();
        assert_eq!(of_features(&spec).collect::<Vec<_>>(), ["list", "find"]);
        assert_eq!(named(&spec).into_iter().collect::<Vec<_>>(), ["find", "list", "other"]);
    }
}
