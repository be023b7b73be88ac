//! The names of all skills of a repository.

use super::directory::{self, FileFindings};
use crate::finding::{Finding, did_you_mean, quoted};
use crate::import::to_label;
use crate::names::name_fault;
use std::collections::BTreeMap;

/// The documentation of a skill with a `skill.json`.
pub(super) const DOCS: &str = "skill.md";

/// The number of skills that are compared with the name of a missing one.
const MAX_COMPARED: usize = 500;

/// The format of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A directory with a `skill.json`.
    SkillJson,
    /// A directory with a `SKILL.md`: an Agent Skill.
    AgentSkill,
}

impl Format {
    /// Returns the name of the file that makes a directory a skill of this format.
    pub fn file(self) -> &'static str {
        match self {
            Self::SkillJson => "skill.json",
            Self::AgentSkill => "SKILL.md",
        }
    }
}

/// The directory of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundSkill {
    /// The path of the directory below the directory of all skills, such as `use-skill/list`.
    pub path: String,
    /// The format.
    pub format: Format,
}

impl FoundSkill {
    /// Returns the path of a file of the skill.
    pub fn file_path(&self, file: &str) -> String {
        format!("{}/{file}", self.path)
    }

    /// Returns the words that become the name of the Skill. The name of an Agent Skill is that of its directory.
    fn words(&self) -> &str {
        match self.format {
            Format::SkillJson => &self.path,
            Format::AgentSkill => self.path.rsplit('/').next().unwrap_or_default(),
        }
    }
}

/// The names of the Skills that a repository's skills become.
#[derive(Debug, Default)]
pub struct Catalogue {
    /// The name of the Skill of each path.
    names: BTreeMap<String, String>,
}

impl Catalogue {
    /// Names the Skills of a repository, and reports names that are not valid or not unique, by the path of the skill's file.
    pub fn new(skills: &[FoundSkill]) -> (Self, FileFindings) {
        let mut catalogue = Self::default();
        let mut findings = FileFindings::new();
        let mut paths: BTreeMap<String, &str> = BTreeMap::new();
        for skill in skills {
            let file = skill.file_path(skill.format.file());
            let words = skill.words();
            let labels: Vec<String> = words.split('/').map(to_label).collect();
            let name = labels.join("-");
            if let Some(fault) = labels.iter().find_map(|label| empty_fault(label)).or_else(|| name_fault(&name)) {
                let message = format!("the name {} cannot become that of a Skill: {name:?} {fault}", quoted(words));
                let finding = Finding::of_file(message).hint("rename or move its directory");
                directory::add(&mut findings, &file, finding);
                continue;
            }
            if labels.iter().map(String::as_str).ne(words.split('/')) {
                let message = format!("the Skill is named {name:?}, since {} is not a valid name", quoted(words));
                directory::add(&mut findings, &file, Finding::warning_of_file(message));
            }
            if let Some(other) = paths.get(&name) {
                let message = format!("the Skill is named {name:?}, and so is that of {}", quoted(other));
                let finding = Finding::of_file(message).hint("rename one of the two directories");
                directory::add(&mut findings, &file, finding);
            }
            paths.entry(name.clone()).or_insert(&skill.path);
            catalogue.names.insert(skill.path.clone(), name);
        }
        (catalogue, findings)
    }

    /// Returns the name of the Skill of a path, if it is valid.
    pub fn name(&self, path: &str) -> Option<&str> {
        self.names.get(path).map(String::as_str)
    }

    /// Returns the name of the Skill that the skill at `from` calls `subskill`: a directory within its own, or the path of another
    /// skill of the repository.
    ///
    /// # Errors
    /// The fault, as the rest of a sentence that begins with the field.
    pub(super) fn resolve(&self, from: &str, subskill: &str) -> Result<&str, String> {
        let is_outside = |part: &str| part.is_empty() || part == "." || part == "..";
        if subskill.contains('\\') || subskill.split('/').any(is_outside) {
            let what = quoted(subskill);
            return Err(format!("must be the path of a skill within the repository, without '..', and is {what}"));
        }
        let nested = format!("{from}/{subskill}");
        self.name(&nested).or_else(|| self.name(subskill)).ok_or_else(|| {
            let below = format!("{from}/");
            let own = self.names.keys().filter_map(|path| path.strip_prefix(&below));
            let known = own.chain(self.names.keys().map(String::as_str)).take(MAX_COMPARED);
            let near = did_you_mean(subskill, known);
            format!(
                "names no skill: there is neither {} nor {} in the repository{near}",
                quoted(&nested),
                quoted(subskill)
            )
        })
    }
}

/// Returns the fault of a part of a name of which no letter or digit is left.
fn empty_fault(label: &str) -> Option<String> {
    label.is_empty().then(|| "has a part without a letter or a digit of ASCII".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn catalogue(paths: &[&str]) -> (Catalogue, Vec<String>) {
        let found = |path: &&str| FoundSkill { path: (*path).to_owned(), format: Format::SkillJson };
        let skills: Vec<FoundSkill> = paths.iter().map(found).collect();
        let (catalogue, findings) = Catalogue::new(&skills);
        let shown = findings.iter().flat_map(|(file, findings)| findings.iter().map(move |it| format!("{file}:{it}")));
        (catalogue, shown.collect())
    }

    #[test]
    fn nested_names_are_joined_and_unusual_ones_are_changed_with_a_warning() {
        let (catalogue, findings) = catalogue(&["use-skill", "use-skill/list", "My Skill/Do_It"]);
        let names = ["use-skill", "use-skill/list", "My Skill/Do_It"].map(|path| catalogue.name(path).unwrap());
        assert_eq!(names, ["use-skill", "use-skill-list", "my-skill-do-it"]);
        assert_eq!(
            findings,
            [
                "My Skill/Do_It/skill.json:1:1: warning: the Skill is named \"my-skill-do-it\", since \"My Skill/Do_It\" is not a \
              valid name"
            ]
        );
    }

    #[rstest]
    #[case::too_long(&format!("{}/{}", "a".repeat(30), "b".repeat(30)), "has 61 characters, and at most 50 are allowed")]
    #[case::a_digit("1st", "beginning with a letter")]
    #[case::not_ascii("a/客服", "has a part without a letter or a digit of ASCII")]
    fn a_name_that_no_object_can_have_is_an_error(#[case] path: &str, #[case] expected: &str) {
        let (catalogue, findings) = catalogue(&[path]);
        assert_eq!(catalogue.name(path), None);
        let [finding] = findings.as_slice() else { panic!("{findings:?}") };
        assert!(
            finding.starts_with(&format!("{path}/skill.json:1:1: error: ")) && finding.contains(expected),
            "{finding}"
        );
    }

    #[test]
    fn two_skills_with_the_same_joined_name_are_an_error() {
        let (_, findings) = catalogue(&["a/b-c", "a-b/c"]);
        assert_eq!(
            findings,
            ["a-b/c/skill.json:1:1: error: the Skill is named \"a-b-c\", and so is that of \"a/b-c\""]
        );
    }

    #[rstest]
    #[case::a_directory_within("a", "list", "a-list")]
    #[case::before_one_elsewhere("a", "b", "a-b")]
    #[case::elsewhere("b", "a/list", "a-list")]
    #[case::at_the_top("a/list", "b", "b")]
    fn a_subskill_is_found_within_its_skill_first(#[case] from: &str, #[case] subskill: &str, #[case] expected: &str) {
        let (catalogue, _) = catalogue(&["a", "a/b", "a/list", "b"]);
        assert_eq!(catalogue.resolve(from, subskill), Ok(expected));
    }

    #[rstest]
    #[case::the_parent("../b", "without '..'")]
    #[case::within("list/../../b", "without '..'")]
    #[case::absolute("/b", "without '..'")]
    #[case::empty("", "without '..'")]
    #[case::of_windows("..\\b", "without '..'")]
    #[case::missing("lst", "neither \"a/lst\" nor \"lst\" in the repository (did you mean \"list\"?)")]
    fn a_subskill_outside_of_the_repository_or_missing_is_refused(#[case] subskill: &str, #[case] expected: &str) {
        let (catalogue, _) = catalogue(&["a", "a/list", "b"]);
        let fault = catalogue.resolve("a", subskill).unwrap_err();
        assert!(fault.contains(expected), "{fault}");
    }
}
