//! Builds the revision: the compiled Skill, immutable and named by its content.

use super::super::validate::{InvalidSkill, ValidMcp, ValidSkill};
use super::metadata::metadata;
use crate::mcp_container::scripts;
use bloomery_crds::names;
use bloomery_crds::run::{self, McpEndpoint, REVISION_KEY, Revision};
use bloomery_crds::scripts::revision_key;
use bloomery_crds::v1alpha1::{Engine, RevisionRef, SkillSpec, Validation};
use k8s_openapi::api::core::v1::ConfigMap;

/// Builds the revision, and the reference by which Jobs name it.
pub fn build_revision(skill: &ValidSkill) -> Result<(ConfigMap, RevisionRef), InvalidSkill> {
    let endpoint = skill.mcp.as_ref().map(|mcp| McpEndpoint { url: url(skill, mcp) });
    // The maximum applies at once, to all Jobs of the Skill, and so do most settings of the validation. A change of them must not create
    // another revision.
    let compiled = |engine: &Engine| {
        let validation = engine.validation.as_ref().and_then(Validation::of_revision);
        Engine { validation, ..engine.clone() }
    };
    let engine = skill.spec.engine.as_ref().map(compiled);
    let spec = SkillSpec { max_running_jobs: None, engine, ..skill.spec.clone() };
    let revision = Revision { scripts: scripts::endpoint(&spec), ..Revision::new(&skill.name, spec, endpoint) };
    let sealed = run::seal(&revision)
        .map_err(|error| InvalidSkill::new(vec![format!("spec: cannot be written as JSON: {error}.")]))?;
    let name = names::revision(&skill.name, &sealed.digest);
    let config_map = ConfigMap {
        metadata: metadata(skill, name.clone(), "revision"),
        immutable: Some(true),
        data: Some([(REVISION_KEY.to_owned(), sealed.text)].into_iter().chain(script_files(skill)).collect()),
        ..ConfigMap::default()
    };
    Ok((config_map, RevisionRef { name, digest: sealed.digest }))
}

/// The scripts, each under a key of its own, which is mounted as a file.
fn script_files(skill: &ValidSkill) -> impl Iterator<Item = (String, String)> {
    let files = skill.spec.scripts.iter().flat_map(|scripts| &scripts.files);
    files.map(|(file, text)| (revision_key(file), text.clone()))
}

/// The URL of the MCP server for a pod of the namespace.
fn url(skill: &ValidSkill, mcp: &ValidMcp) -> String {
    let (service, port, path) = match mcp {
        ValidMcp::Container(container) => (names::mcp_server(&skill.name), container.port, &container.path),
        ValidMcp::Service(service) => (service.name.clone(), service.port, &service.path),
        ValidMcp::Uri(uri) => return uri.clone(),
        ValidMcp::Sidecar(container) => return format!("http://127.0.0.1:{}{}", container.port, container.path),
    };
    format!("http://{service}.{}.svc:{port}{path}", skill.namespace)
}

#[cfg(test)]
mod tests {
    use super::super::metadata::yaml;
    use super::*;
    use crate::skill::fixtures;
    use crate::skill::validate::validate;

    fn build_valid(skill: &bloomery_crds::v1alpha1::Skill) -> (ConfigMap, RevisionRef) {
        build_revision(&validate(skill).unwrap()).unwrap()
    }

    #[test]
    fn the_revision_for_each_kind_of_mcp_server() {
        insta::assert_snapshot!("revision_container", yaml(&build_valid(&fixtures::with_container()).0));
        insta::assert_snapshot!("revision_service", yaml(&build_valid(&fixtures::with_service()).0));
        insta::assert_snapshot!("revision_scripts", yaml(&build_valid(&fixtures::with_scripts()).0));
        insta::assert_snapshot!("revision_sidecar", yaml(&build_valid(&fixtures::with_sidecar()).0));
        insta::assert_snapshot!("revision_uri", yaml(&build_valid(&fixtures::with_uri()).0));
        insta::assert_snapshot!("revision_without_server", yaml(&build_valid(&fixtures::without_server()).0));
    }

    #[test]
    fn the_maximum_of_running_jobs_changes_no_revision() {
        let mut skill = fixtures::with_service();
        let before = build_valid(&skill);
        skill.spec.max_running_jobs = Some(2);
        assert_eq!(build_valid(&skill), before);
    }

    #[test]
    fn of_the_validation_only_the_settings_of_the_tests_change_the_revision() {
        let with = |validation: serde_json::Value| {
            let mut skill = fixtures::with_service();
            skill.spec.engine = serde_json::from_value(serde_json::json!({ "validation": validation })).unwrap();
            build_valid(&skill)
        };
        let before = with(serde_json::json!({}));
        assert_eq!(with(serde_json::json!({"tokens": 9000})), before);
        assert_ne!(with(serde_json::json!({"runs": 3})), before);
    }

    #[test]
    fn a_worker_can_open_it_by_its_reference() {
        let (config_map, reference) = build_valid(&fixtures::with_service());
        let text = &config_map.data.unwrap()[REVISION_KEY];
        let revision = run::open_revision(text, &reference.digest).unwrap();
        assert_eq!(revision.mcp.unwrap().url, "http://shared-orders.acme.svc:8090/mcp");
        assert_eq!(config_map.metadata.name.unwrap(), reference.name);
    }

    #[test]
    fn the_name_depends_only_on_the_spec_of_the_skill() {
        let mut changed = fixtures::with_service();
        changed.metadata.generation = Some(9);
        changed.metadata.labels = Some([("team".to_owned(), "a".to_owned())].into());
        assert_eq!(build_valid(&changed).1, build_valid(&fixtures::with_service()).1);
        changed.spec.problem.statement = "Help with refunds".into();
        assert_ne!(build_valid(&changed).1, build_valid(&fixtures::with_service()).1);
        changed.spec.problem.statement = fixtures::with_service().spec.problem.statement;
        assert_eq!(build_valid(&changed).1, build_valid(&fixtures::with_service()).1);
    }

    #[test]
    fn the_revision_holds_the_whole_spec() {
        let skill = fixtures::complete();
        let (config_map, reference) = build_valid(&skill);
        let text = &config_map.data.unwrap()[REVISION_KEY];
        insta::assert_snapshot!("revision_complete", text);
        assert_eq!(run::open_revision(text, &reference.digest).unwrap().spec, skill.spec);
    }
}
