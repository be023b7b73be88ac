//! Checks the Skills that other Skills name, over all Skills that are checked together.

use crate::checked::CheckedDocument;
use crate::finding::{Finding, FindingKind, Severity, did_you_mean, quoted};
use crate::repository::{Invoker, Subskill, cycles};
use crate::tree::locate;
use bloomery_crds::children::EVERY_SKILL;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A Skill of the input, and the Skills that it names. The names have the form `namespace/name` if the document has a namespace.
#[derive(Debug)]
pub struct InputSkill {
    name: String,
    invoker: Invoker,
    /// The entries of `spec.skills`, except for `*`.
    allowed: Vec<Subskill>,
}

impl InputSkill {
    /// Returns the Skill of a document in a file; none if the document is no Skill, or has no name.
    pub fn new(file: &str, checked: &CheckedDocument) -> Option<Self> {
        let draft = checked.draft.as_ref()?;
        let metadata = |field: &str| checked.object.pointer(&format!("/metadata/{field}")).and_then(Value::as_str);
        let namespace = metadata("namespace");
        let qualified =
            |name: &str| namespace.map_or_else(|| name.to_owned(), |namespace| format!("{namespace}/{name}"));
        let named = |path: String, name: &str| {
            let (line, column, document_path) = locate(&draft.root, &path);
            let skill = Subskill { skill: qualified(name), line, column, path: document_path };
            (!draft.is_doubtful(&path)).then_some(skill)
        };
        let subskills = draft.spec.features.iter().enumerate();
        let subskills = subskills
            .filter_map(|(at, feature)| named(format!("spec.features[{at}].ext.subskill"), feature.subskill()?));
        let allowed = draft.spec.skills.iter().enumerate().filter(|(_, name)| *name != EVERY_SKILL);
        let allowed = allowed.filter_map(|(at, name)| named(format!("spec.skills[{at}]"), name));
        let invoker = Invoker { file: file.to_owned(), object: checked.object_name(), subskills: subskills.collect() };
        Some(Self { name: qualified(metadata("name")?), invoker, allowed: allowed.collect() })
    }
}

/// Returns the findings about the Skills that the Skills of an input name, each with its file: an error for each cycle of subskills. If
/// there are several Skills, also a warning about each named Skill that is not among them: it may be in the cluster.
pub fn findings(skills: Vec<InputSkill>) -> Vec<(String, Finding)> {
    let mut found = if skills.len() > 1 { missing(&skills) } else { Vec::new() };
    let invokers: BTreeMap<String, Invoker> = skills.into_iter().map(|skill| (skill.name, skill.invoker)).collect();
    found.extend(cycles(&invokers));
    found
}

fn missing(skills: &[InputSkill]) -> Vec<(String, Finding)> {
    let names: BTreeSet<&str> = skills.iter().map(|skill| skill.name.as_str()).collect();
    let mut found = Vec::new();
    for InputSkill { name: _, invoker, allowed } in skills {
        // A subskill is usually an entry of `spec.skills` too.
        let mut reported = BTreeSet::new();
        for named in invoker.subskills.iter().chain(allowed) {
            if !names.contains(named.skill.as_str()) && reported.insert(&named.skill) {
                found.push((invoker.file.clone(), missing_finding(invoker, named, &names)));
            }
        }
    }
    found
}

fn missing_finding(invoker: &Invoker, missing: &Subskill, names: &BTreeSet<&str>) -> Finding {
    let name = without_namespace(&missing.skill);
    let near = did_you_mean(name, names.iter().copied().map(without_namespace));
    Finding {
        line: missing.line,
        column: missing.column,
        severity: Severity::Warning,
        object: invoker.object.clone(),
        path: missing.path.clone(),
        message: format!("there is no Skill {} among the checked ones{near}", quoted(name)),
        hint: Some("check its file in the same run, unless the Skill is in the cluster only".to_owned()),
        kind: FindingKind::Other,
    }
}

fn without_namespace(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ImportOptions, check, yaml};
    use rstest::rstest;

    /// Returns a Skill with this metadata, these entries of `spec.skills`, and a feature with this subskill.
    fn skill(metadata: &str, skills: &str, subskill: &str) -> String {
        format!(
            "---\napiVersion: bloomery.dev/v1alpha1\nkind: Skill\nmetadata: {{{metadata}}}\nspec:\n  problem: {{statement: x}}\n  \
             skills: [{skills}]\n  features: [{{name: a, testScenario: x, expectedResult: y, ext: {{{subskill}}}}}]\n"
        )
    }

    /// Returns the findings of files that have these texts, each with its file.
    fn found(files: &[(&str, String)]) -> Vec<String> {
        let mut skills = Vec::new();
        for (file, text) in files {
            let documents = yaml::read(text.as_bytes()).documents;
            let checked = documents.iter().map(|document| check(document, &ImportOptions::default()));
            skills.extend(checked.filter_map(|checked| InputSkill::new(file, &checked)));
        }
        let shown = |(file, finding): (String, Finding)| {
            format!("{file}:{} {}", finding.object.as_deref().unwrap_or_default(), finding)
        };
        findings(skills).into_iter().map(shown).collect()
    }

    #[test]
    fn a_cycle_of_several_files_is_an_error_of_the_file_that_closes_it() {
        let a = ("a.yaml", skill("name: a", "b", "subskill: b"));
        let b = ("b.yaml", skill("name: b", "a", "subskill: a"));
        let expected =
            "b.yaml:Skill/b 8:76: error: spec.features[0].ext.subskill: closes a cycle of subskills: a -> b -> a";
        assert_eq!(found(&[a.clone(), b.clone()]), [expected]);
        let (_, text) = &b;
        let one_file = found(&[("a.yaml", format!("{}{text}", a.1))]);
        let [finding] = one_file.as_slice() else { panic!("{one_file:?}") };
        assert!(finding.starts_with("a.yaml:Skill/b 16:76: error: "), "{finding}");
    }

    #[test]
    fn a_skill_that_names_itself_is_an_error_without_others() {
        let expected = "a.yaml:Skill/a 8:76: error: spec.features[0].ext.subskill: closes a cycle of subskills: a -> a";
        assert_eq!(found(&[("a.yaml", skill("name: a", "\"*\"", "subskill: a"))]), [expected]);
    }

    #[test]
    fn a_cycle_does_not_cross_namespaces() {
        let a = ("a.yaml", skill("name: a, namespace: x", "b", "subskill: b"));
        let b = ("b.yaml", skill("name: b, namespace: y", "a", "subskill: a"));
        let found = found(&[a, b]);
        assert!(found.len() == 2 && found.iter().all(|finding| finding.contains("warning")), "{found:?}");
    }

    #[rstest]
    #[case::subskill("refnuds", "subskill: refnuds", &["8:76: warning: spec.features[0].ext.subskill: there is no Skill \"refnuds\" among the checked ones (did you mean \"refunds\"?)"])]
    #[case::subskill_of_every_skill("\"*\"", "subskill: mail", &["8:76: warning: spec.features[0].ext.subskill: there is no Skill \"mail\" among the checked ones"])]
    #[case::allowed("refunds, mail", "", &["7:21: warning: spec.skills[1]: there is no Skill \"mail\" among the checked ones"])]
    #[case::all_there("\"*\", refunds", "subskill: refunds", &[])]
    fn a_named_skill_that_is_not_among_several_is_a_warning(
        #[case] skills: &str,
        #[case] subskill: &str,
        #[case] expected: &[&str],
    ) {
        let a = ("a.yaml", skill("name: a", skills, subskill));
        let expected: Vec<String> = expected.iter().map(|finding| format!("a.yaml:Skill/a {finding}")).collect();
        assert_eq!(found(&[a.clone(), ("b.yaml", skill("name: refunds", "", ""))]), expected);
        assert_eq!(found(&[a]), [""; 0], "it may be in the namespace");
    }
}
