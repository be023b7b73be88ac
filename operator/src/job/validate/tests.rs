use super::models::{model, models};
use super::resources::is_single_node;
use super::revision::{compiled as open, current_revision};
use super::*;
use crate::job::fixtures;
use bloomery_crds::run::{self, KeyFile, Revision, seal};
use bloomery_crds::v1alpha1::{Model, Skill, SkillStatus};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::core::DeserializeGuard;
use rstest::rstest;
use serde_json::json;
use std::sync::Arc;

fn skill(conditions: &[(&str, &str, &str)]) -> Guarded<Skill> {
    let conditions: Vec<_> = conditions
        .iter()
        .map(|(kind, status, message)| {
            json!({ "type": kind, "status": status, "reason": "Because", "message": message, "lastTransitionTime": "2026-01-01T00:00:00Z" })
        })
        .collect();
    let skill = json!({
        "apiVersion": "bloomery.dev/v1alpha1",
        "kind": "Skill",
        "metadata": { "name": "cs-tier-1", "namespace": "acme", "generation": 2 },
        "spec": { "problem": { "statement": "refunds" } },
        "status": { "observedGeneration": 2, "revision": fixtures::revision(), "conditions": conditions },
    });
    DeserializeGuard(Ok(serde_json::from_value(skill).unwrap()))
}

const ALL: [(&str, &str, &str); 3] =
    [("Accepted", "True", ""), ("MemoryReady", "True", ""), ("McpAvailable", "True", "")];

#[test]
fn a_skill_that_is_ready_gives_its_revision() {
    assert_eq!(current_revision("cs-tier-1", Some(&skill(&ALL))), Ok(fixtures::revision()));
    let unbound = [ALL[0], ("MemoryReady", "Unknown", "soon"), ALL[2]];
    assert_eq!(current_revision("cs-tier-1", Some(&skill(&unbound))), Ok(fixtures::revision()));
}

#[rstest]
#[case::refused(&[("Accepted", "False", "spec.role: no")], "Accepted=False (Because): spec.role: no")]
#[case::no_server(&[ALL[0], ALL[1], ("McpAvailable", "False", "0 of 1 pods")], "McpAvailable=False (Because): 0 of 1 pods")]
#[case::no_memory(&[ALL[0], ("MemoryReady", "False", "lost"), ALL[2]], "is not ready (Because): lost")]
#[case::unknown(&[], "Accepted is not known yet")]
fn a_skill_that_is_not_ready_says_why(#[case] conditions: &[(&str, &str, &str)], #[case] why: &str) {
    let wait = current_revision("cs-tier-1", Some(&skill(conditions))).unwrap_err();
    assert_eq!(wait.reason, Reason::SkillNotReady);
    assert!(wait.message.contains(why), "{}", wait.message);
}

#[test]
fn a_skill_that_was_just_edited_is_waited_for() {
    let mut edited = skill(&ALL);
    edited.0.as_mut().unwrap().metadata.generation = Some(3);
    assert_eq!(current_revision("cs-tier-1", Some(&edited)).unwrap_err().reason, Reason::SkillNotReady);
    edited.0.as_mut().unwrap().status = None::<SkillStatus>;
    assert_eq!(current_revision("cs-tier-1", Some(&edited)).unwrap_err().reason, Reason::SkillNotReady);
    assert_eq!(current_revision("cs-tier-1", None).unwrap_err().reason, Reason::SkillNotFound);
}

#[test]
fn nothing_begins_with_a_skill_on_its_way_out() {
    let mut going = skill(&ALL);
    let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(fixtures::at(0));
    going.0.as_mut().unwrap().metadata.deletion_timestamp = Some(now);
    assert_eq!(current_revision("cs-tier-1", Some(&going)).unwrap_err().reason, Reason::SkillNotFound);
}

fn stored(text: &str) -> ConfigMap {
    let data = [(run::REVISION_KEY.to_owned(), text.to_owned())].into();
    ConfigMap { data: Some(data), ..ConfigMap::default() }
}

#[test]
fn a_revision_counts_behind_its_seal_only() {
    let skill = skill(&ALL).0.unwrap();
    let compiled = Revision { version: 1, skill: "cs-tier-1".into(), spec: skill.spec, mcp: None };
    let sealed = seal(&compiled).unwrap();
    let expected = RevisionRef { name: "cs-tier-1-x".into(), digest: sealed.digest };
    assert_eq!(open(&expected, Some(&stored(&sealed.text))), Ok(compiled));
    for broken in [None, Some(stored("{}"))] {
        let wait = open(&expected, broken.as_ref()).unwrap_err();
        assert!(wait.message.contains("cs-tier-1-x"), "{}", wait.message);
    }
}

fn model_of(spec: &serde_json::Value, status: &str) -> Guarded<Model> {
    let model = json!({
        "apiVersion": "bloomery.dev/v1alpha1",
        "kind": "Model",
        "metadata": { "name": "fast", "namespace": "acme", "generation": 1 },
        "spec": spec,
        "status": { "observedGeneration": 1, "conditions": [
            { "type": "Ready", "status": status, "reason": "Because", "message": "so", "lastTransitionTime": "2026-01-01T00:00:00Z" },
        ] },
    });
    DeserializeGuard(Ok(serde_json::from_value(model).unwrap()))
}

#[test]
fn a_model_is_told_as_the_worker_calls_it() {
    let spec = json!({
        "provider": "openai", "model": "gpt-5-mini", "baseUrl": "https://x/v1", "timeout": "90s",
        "apiKey": { "secretKeyRef": { "name": "llm", "key": "token" } },
    });
    let key = KeyFile { path: "/etc/bloomery/secrets/llm/token".into(), secret: "llm".into(), key: "token".into() };
    let endpoint = model("fast", Some(&model_of(&spec, "True"))).unwrap();
    assert_eq!((endpoint.name.as_str(), endpoint.timeout_seconds, endpoint.api_key), ("fast", 90, Some(key)));
    assert_eq!(endpoint.context_window, 128_000);
    assert_eq!(model("fast", Some(&model_of(&spec, "False"))).unwrap_err().reason, Reason::ModelNotReady);
    assert_eq!(model("fast", None).unwrap_err().reason, Reason::ModelNotFound);
}

#[test]
fn every_model_is_told_in_order_or_every_one_that_is_missing_is_named() {
    let spec = json!({ "provider": "openai", "model": "gpt", "baseUrl": "https://x/v1", "contextWindow": 9000 });
    let named = |name: &str, status: &str| {
        let mut model = model_of(&spec, status);
        model.0.as_mut().unwrap().metadata.name = Some(name.to_owned());
        Some(Arc::new(model))
    };
    let found = models(&["large", "fast"], |name| named(name, "True")).unwrap();
    let told: Vec<_> = found.iter().map(|model| (model.name.as_str(), model.context_window)).collect();
    assert_eq!(told, [("large", 9000), ("fast", 9000)]);
    let wait = models(&["large", "fast", "kind"], |name| if name == "large" { named(name, "True") } else { None });
    let wait = wait.unwrap_err();
    assert_eq!(wait.reason, Reason::ModelNotFound);
    assert!(wait.message.contains("Model fast") && wait.message.contains("Model kind"), "{}", wait.message);
    let wait = models(&["large"], |name| named(name, "False")).unwrap_err();
    assert_eq!(wait.reason, Reason::ModelNotReady);
    assert!(wait.message.contains("Model large"), "{}", wait.message);
}

/// Models by name, each with its fallbacks; all of them ready.
fn found(models: &[(&str, &[&str])], name: &str) -> Option<Arc<Guarded<Model>>> {
    let (_, fallback) = models.iter().find(|(known, _)| *known == name)?;
    let spec = json!({ "provider": "openai", "model": "gpt", "baseUrl": "https://x/v1", "fallback": fallback });
    let mut model = model_of(&spec, "True");
    model.0.as_mut().unwrap().metadata.name = Some(name.to_owned());
    Some(Arc::new(model))
}

#[test]
fn fallbacks_are_told_after_the_models_of_stages_each_with_its_own() {
    let all: &[(&str, &[&str])] = &[("large", &["fast"]), ("fast", &["local"]), ("local", &[]), ("kind", &["local"])];
    let told: Vec<(String, Vec<String>)> = models(&["large", "kind"], |name| found(all, name))
        .unwrap()
        .into_iter()
        .map(|endpoint| (endpoint.name, endpoint.fallback))
        .collect();
    let expected = json!([["large", ["fast", "local"]], ["kind", ["local"]], ["fast", ["local"]], ["local", []]]);
    assert_eq!(json!(told), expected);
}

#[rstest]
#[case::missing(&[("large", &["fast"][..])], "the Model large names the Model fast, which does not exist")]
#[case::in_a_circle(&[("large", &["fast"][..]), ("fast", &["large"][..])], "large -> fast -> large")]
fn fallbacks_that_cannot_be_used_are_named(#[case] all: &[(&str, &[&str])], #[case] why: &str) {
    let wait = models(&["large"], |name| found(all, name)).unwrap_err();
    assert_eq!(wait.reason, Reason::ModelNotReady);
    assert!(wait.message.contains(why), "{}", wait.message);
}

#[test]
fn all_that_a_model_says_is_told() {
    let spec = json!({
        "provider": "anthropic", "model": "claude", "baseUrl": "https://x/v1", "maxOutputTokens": 2000,
        "ca": { "configMapKeyRef": { "name": "corporate", "key": "ca.crt" } }, "proxy": "http://proxy:3128",
    });
    let endpoint = model("fast", Some(&model_of(&spec, "True"))).unwrap();
    let ca = endpoint.ca.unwrap();
    assert_eq!(ca.path, "/etc/bloomery/configmaps/corporate/ca.crt");
    assert_eq!(ca.object.to_string(), "ConfigMap `corporate`");
    assert_eq!((endpoint.proxy.as_deref(), endpoint.max_output_tokens), (Some("http://proxy:3128"), Some(2000)));
    let mut spec = spec;
    spec["ca"] = json!({ "secretKeyRef": { "name": "llm", "key": "ca.crt" } });
    let ca = model("fast", Some(&model_of(&spec, "True"))).unwrap().ca.unwrap();
    assert_eq!(
        (ca.path.as_str(), ca.object.to_string()),
        ("/etc/bloomery/secrets/llm/ca.crt", "Secret `llm`".to_owned())
    );
}

#[rstest]
#[case(&["ReadWriteOnce"], true)]
#[case(&["ReadWriteOnce", "ReadWriteMany"], false)]
fn the_claim_itself_says_whether_pods_share_a_node(#[case] modes: &[&str], #[case] single_node: bool) {
    let claim = serde_json::from_value(json!({ "spec": { "accessModes": modes } })).unwrap();
    assert_eq!(is_single_node(Some(&claim)), single_node);
    assert!(is_single_node(None));
}
