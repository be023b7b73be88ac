//! Checks the references of the features of a Skill, the settings of their validation, and the size of the Skill's texts.

use crate::children::may_invoke;
use crate::docs::Docs;
use crate::fault::Fault;
use crate::limits::EffectiveLimits;
use crate::nearest::{nearest, suggestion};
use crate::v1alpha1::{Feature, FeatureExtension, Scripts, SkillSpec, Validation};

/// The largest size of a Skill's documentation, features, notes, scripts and environment together, in bytes. So an object stays below
/// 96 KiB.
pub const MAX_TEXTS_BYTES: usize = 64 * 1024;

/// Returns all faults of the features of a Skill, of their validation and of its texts.
pub fn faults(spec: &SkillSpec) -> Vec<Fault> {
    let docs = spec.docs.as_deref().map(Docs::new);
    let mut faults = Vec::new();
    for (at, feature) in spec.features.iter().enumerate() {
        let Some(FeatureExtension { subskill, script, skill_md_ref }) = &feature.ext else { continue };
        let messages = [
            ("subskill", subskill.as_deref().and_then(|name| subskill_fault(name, &spec.skills))),
            ("script", script.as_deref().and_then(|name| script_fault(name, spec.scripts.as_ref()))),
            ("skillMdRef", skill_md_ref.as_deref().and_then(|reference| section_fault(reference, docs.as_ref()))),
        ];
        faults.extend(messages.into_iter().filter_map(|(field, message)| {
            Some(Fault { path: format!("spec.features[{at}].ext.{field}"), message: message? })
        }));
    }
    faults.extend(validation_faults(spec));
    faults.extend(size_fault(spec));
    faults
}

/// Returns the faults of settings that need a validation that cannot run, and of a limit that has no effect.
fn validation_faults(spec: &SkillSpec) -> Vec<Fault> {
    let Some(Validation { on_change, runs: _, pass_rate: _, tokens, require_for }) = spec.validation() else {
        return Vec::new();
    };
    let tests_on_change = *on_change == Some(true);
    let has_no_feature = spec.tested_features().next().is_none();
    let no_feature = || "the Skill has no feature to test: add one to spec.features, or remove this field".to_owned();
    let required = spec.resources.iter().find(|resource| resource.required == Some(true));
    let required = required.filter(|_| tests_on_change).map(|resource| {
        format!(
            "the Skill requires the resource {}, and the operator binds none: remove this field, and create Jobs with mode: Validate",
            resource.name
        )
    });
    let largest = EffectiveLimits::resolve(spec.limits(), None).tokens;
    let too_many = tokens.filter(|tokens| *tokens > largest).map(|tokens| {
        format!("{tokens} is more than engine.limits.tokens, {largest}: raise that limit, or lower this one")
    });
    let messages = [
        ("onChange", (tests_on_change && has_no_feature).then(no_feature)),
        ("onChange", required),
        ("tokens", too_many),
        ("requireFor", (require_for.is_some() && has_no_feature).then(no_feature)),
    ];
    let fault = |(field, message): (&str, Option<String>)| {
        Some(Fault { path: format!("spec.engine.validation.{field}"), message: message? })
    };
    messages.into_iter().filter_map(fault).collect()
}

fn subskill_fault(name: &str, skills: &[String]) -> Option<String> {
    let is_listed = may_invoke(skills, name);
    let near = || suggestion(nearest(name, skills.iter().map(String::as_str)));
    (!is_listed).then(|| format!("{name:?} is not in spec.skills{}", near()))
}

/// Returns the fault of a script that is no file of the Skill. The files of a `ConfigMap` are not known.
fn script_fault(name: &str, scripts: Option<&Scripts>) -> Option<String> {
    let Some(Scripts { files, config_map: None, .. }) = scripts else {
        return scripts.is_none().then(|| format!("{name:?} is a script, and spec.scripts is missing"));
    };
    let near = || suggestion(nearest(name, files.keys().map(String::as_str)));
    (!files.contains_key(name)).then(|| format!("{name:?} is not in spec.scripts.files{}", near()))
}

fn section_fault(reference: &str, docs: Option<&Docs<'_>>) -> Option<String> {
    let Some(docs) = docs else {
        return Some(format!("{reference:?} is a section of the documentation, and spec.docs is missing"));
    };
    let near = || suggestion(docs.nearest(reference).as_deref());
    docs.find(reference).is_none().then(|| format!("{reference:?} is no section of spec.docs{}", near()))
}

fn size_fault(spec: &SkillSpec) -> Option<Fault> {
    let notes = spec.memory.iter().flat_map(|memory| &memory.notes);
    let scripts = spec.scripts.iter().flat_map(|scripts| &scripts.files);
    let bytes_of = |(name, text): (&String, &String)| name.len() + text.len();
    let container = spec.mcp_server.as_ref().and_then(|server| server.container.as_ref());
    let env = container.iter().flat_map(|container| &container.env);
    let texts = [
        ("spec.docs", spec.docs.as_ref().map_or(0, String::len)),
        ("spec.features", spec.features.iter().map(feature_bytes).sum()),
        ("spec.memory.notes", notes.map(bytes_of).sum()),
        ("spec.scripts.files", scripts.map(bytes_of).sum()),
        (
            "spec.mcpServer.container.env",
            env.map(|set| set.name.len() + set.value.as_ref().map_or(0, String::len)).sum(),
        ),
    ];
    let total: usize = texts.iter().map(|(_, bytes)| bytes).sum();
    let (path, _) = texts.into_iter().max_by_key(|(_, bytes)| *bytes)?;
    (total > MAX_TEXTS_BYTES).then(|| Fault {
        path: path.to_owned(),
        message: format!(
            "docs, features, memory.notes, scripts.files and mcpServer.container.env have together {total} bytes, and the maximum is \
             {MAX_TEXTS_BYTES}: shorten them"
        ),
    })
}

fn feature_bytes(feature: &Feature) -> usize {
    let Feature { name, test_scenario, expected_result, optional: _, ext: _, allow } = feature;
    name.len() + test_scenario.len() + expected_result.len() + allow.iter().map(String::len).sum::<usize>()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    /// Returns the faults of a Skill with a feature that has this extension.
    fn faults_of(ext: &Value, fields: &Value) -> Vec<String> {
        let feature = json!({"name": "a", "testScenario": "Given x", "expectedResult": "y", "ext": ext});
        let mut skill = json!({"problem": {"statement": "help"}, "features": [feature]});
        skill.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let faults = faults(&serde_json::from_value(skill).unwrap());
        faults.into_iter().map(|Fault { path, message }| format!("{path}: {message}")).collect()
    }

    #[rstest]
    #[case::a_subskill(json!({"subskill": "find"}), json!({"skills": ["find"]}))]
    #[case::every_subskill(json!({"subskill": "find"}), json!({"skills": ["*"]}))]
    #[case::a_script(json!({"script": "check.sh"}), json!({"scripts": {"image": "bash", "files": {"check.sh": "true"}}}))]
    #[case::a_script_of_a_config_map(json!({"script": "check.sh"}), json!({"scripts": {"image": "bash", "configMap": "checks"}}))]
    #[case::a_section(json!({"skillMdRef": "#Refunds/limits"}), json!({"docs": "# Refunds\n## Limits\n"}))]
    #[case::nothing(json!({}), json!({}))]
    fn a_reference_to_a_part_of_the_skill_is_no_fault(#[case] ext: Value, #[case] fields: Value) {
        assert_eq!(faults_of(&ext, &fields), [""; 0]);
    }

    #[rstest]
    #[case::a_subskill(
        json!({"subskill": "fnid"}), json!({"skills": ["find"]}),
        "subskill: \"fnid\" is not in spec.skills (did you mean \"find\"?)"
    )]
    #[case::no_subskills(json!({"subskill": "find"}), json!({}), "subskill: \"find\" is not in spec.skills")]
    #[case::a_script(
        json!({"script": "chekc.sh"}), json!({"scripts": {"image": "bash", "files": {"check.sh": "true"}}}),
        "script: \"chekc.sh\" is not in spec.scripts.files (did you mean \"check.sh\"?)"
    )]
    #[case::no_scripts(json!({"script": "a.sh"}), json!({}), "script: \"a.sh\" is a script, and spec.scripts is missing")]
    #[case::a_section(
        json!({"skillMdRef": "#refnuds"}), json!({"docs": "# Refunds\n```\n# Refnuds\n```\n"}),
        "skillMdRef: \"#refnuds\" is no section of spec.docs (did you mean \"#refunds\"?)"
    )]
    #[case::no_docs(
        json!({"skillMdRef": "#a"}), json!({}),
        "skillMdRef: \"#a\" is a section of the documentation, and spec.docs is missing"
    )]
    fn a_reference_to_nothing_is_a_fault(#[case] ext: Value, #[case] fields: Value, #[case] expected: &str) {
        assert_eq!(faults_of(&ext, &fields), [format!("spec.features[0].ext.{expected}")]);
    }

    #[rstest]
    #[case::everything(json!({"onChange": true, "runs": 3, "passRate": 0.66, "tokens": 200_000, "requireFor": "run"}), json!({}), "")]
    #[case::no_feature(
        json!({"onChange": true}), json!({"features": []}),
        "onChange: the Skill has no feature to test: add one to spec.features, or remove this field"
    )]
    #[case::nothing_to_require(
        json!({"requireFor": "run"}), json!({"features": []}),
        "requireFor: the Skill has no feature to test: add one to spec.features, or remove this field"
    )]
    #[case::only_runs(json!({"runs": 3}), json!({"features": []}), "")]
    #[case::a_required_resource(
        json!({"onChange": true}), json!({"resources": [{"name": "code", "type": "filesystem", "required": true}]}),
        "onChange: the Skill requires the resource code, and the operator binds none: remove this field, and create Jobs with mode: Validate"
    )]
    #[case::a_required_resource_without_a_job(
        json!({"requireFor": "run"}), json!({"resources": [{"name": "code", "type": "filesystem", "required": true}]}), ""
    )]
    #[case::more_tokens_than_a_job(
        json!({"tokens": 200_001}), json!({}),
        "tokens: 200001 is more than engine.limits.tokens, 200000: raise that limit, or lower this one"
    )]
    fn a_validation_that_can_never_be_is_a_fault(
        #[case] validation: Value,
        #[case] fields: Value,
        #[case] expected: &str,
    ) {
        let mut all = json!({"engine": {"validation": validation}});
        all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        let expected = (!expected.is_empty()).then(|| format!("spec.engine.validation.{expected}"));
        assert_eq!(faults_of(&json!(null), &all), expected.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn texts_that_are_together_too_large_are_a_fault_of_the_largest_field() {
        let notes =
            |bytes: usize| json!({"docs": "x".repeat(30_000), "memory": {"notes": {"progress": "x".repeat(bytes)}}});
        // The names and the other texts have 17 bytes.
        assert_eq!(faults_of(&json!(null), &notes(MAX_TEXTS_BYTES - 30_017)), [""; 0]);
        let faults = faults_of(&json!(null), &notes(MAX_TEXTS_BYTES - 30_016));
        assert!(
            faults.len() == 1 && faults[0].starts_with("spec.memory.notes: ") && faults[0].contains("65537"),
            "{faults:?}"
        );
        let variables: Vec<_> =
            (0..17).map(|at| json!({"name": format!("A{at}"), "value": "x".repeat(4_096)})).collect();
        let faults = faults_of(&json!(null), &json!({"mcpServer": {"container": {"image": "a", "env": variables}}}));
        assert!(faults.len() == 1 && faults[0].starts_with("spec.mcpServer.container.env: "), "{faults:?}");
    }
}
