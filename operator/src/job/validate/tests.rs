use super::models::{resolve_model, resolve_models};
use super::resources::is_single_node;
use super::revision::{new_revision, open_revision, pins, refuse_other_revision};
use super::*;
use crate::caches::Guarded;
use crate::job::fixtures;
use bloomery_crds::Digest;
use bloomery_crds::probe::{rules_digest, server_digest};
use bloomery_crds::run::{self, KeyFile, Revision, seal};
use bloomery_crds::scripts::revision_key;
use bloomery_crds::v1alpha1::{Model, Skill, SkillStatus, VerifiedTools};
use k8s_openapi::api::core::v1::ConfigMap;
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
    Guarded(Ok(serde_json::from_value(skill).unwrap()))
}

const ALL_TRUE: [(&str, &str, &str); 3] =
    [("Accepted", "True", ""), ("MemoryReady", "True", ""), ("McpAvailable", "True", "")];

#[test]
fn a_ready_skill_has_a_current_revision() {
    assert_eq!(new_revision("cs-tier-1", Some(&skill(&ALL_TRUE)), false), Ok(fixtures::revision()));
    let unbound = [ALL_TRUE[0], ("MemoryReady", "Unknown", "soon"), ALL_TRUE[2]];
    assert_eq!(new_revision("cs-tier-1", Some(&skill(&unbound)), false), Ok(fixtures::revision()));
}

#[rstest]
#[case::refused(&[("Accepted", "False", "spec.role: no")], "Accepted=False (Because): spec.role: no")]
#[case::no_server(&[ALL_TRUE[0], ALL_TRUE[1], ("McpAvailable", "False", "0 of 1 pods")], "McpAvailable=False (Because): 0 of 1 pods")]
#[case::no_memory(&[ALL_TRUE[0], ("MemoryReady", "False", "lost"), ALL_TRUE[2]], "is not ready (Because): lost")]
#[case::beyond_a_limit(&[ALL_TRUE[0], ALL_TRUE[1], ALL_TRUE[2], ("WithinLimits", "False", "spec.engine.limits.steps: no")], "is beyond a limit of its namespace: spec.engine.limits.steps: no")]
#[case::no_network(&[ALL_TRUE[0], ALL_TRUE[1], ALL_TRUE[2], ("NetworkReady", "False", "spec.mcpServer.egress[0]: no")], "is not ready (Because): spec.mcpServer.egress[0]: no")]
#[case::unknown(&[], "Accepted is not known yet")]
fn the_wait_for_a_skill_names_the_unmet_condition(#[case] conditions: &[(&str, &str, &str)], #[case] why: &str) {
    let wait = new_revision("cs-tier-1", Some(&skill(conditions)), false).unwrap_err();
    assert_eq!(wait.reason, Reason::SkillNotReady);
    assert!(wait.message.contains(why), "{}", wait.message);
}

/// A Skill with an MCP server whose tools are verified, after a change of `status.tools`.
fn verified(change: fn(&mut VerifiedTools)) -> Guarded<Skill> {
    let Guarded(Ok(mut skill)) = skill(&[
        ALL_TRUE[0],
        ALL_TRUE[1],
        ALL_TRUE[2],
        ("McpVerified", "False", "not verified"),
        ("ToolsPinned", "False", "changed"),
    ]) else {
        panic!()
    };
    skill.spec.mcp_server = serde_json::from_value(json!({ "service": { "name": "orders", "port": 80 } })).unwrap();
    let server = server_digest(skill.spec.mcp_server.as_ref().unwrap());
    let digest = run::seal(&json!({})).unwrap().digest;
    let mut tools: VerifiedTools = serde_json::from_value(json!({
        "server": server, "digest": digest, "pins": { "tools": [{ "name": "refund", "digest": "0" }] },
        "found": {
            "key": digest, "rules": rules_digest(&skill.spec), "at": "2026-01-01T00:00:00Z", "digest": digest, "count": 1,
        },
    }))
    .unwrap();
    change(&mut tools);
    skill.status.as_mut().unwrap().tools = Some(tools);
    Guarded(Ok(skill))
}

#[rstest]
#[case::verified(|_: &mut VerifiedTools| (), None)]
#[case::changed_tools(|tools: &mut VerifiedTools| tools.found.changes = vec!["refund: is missing".into()], None)]
#[case::other_image(|tools: &mut VerifiedTools| tools.found.key = Digest::of_bytes(b"other"), None)]
#[case::other_server(|tools: &mut VerifiedTools| tools.server = Digest::of_bytes(b"other"), Some("McpVerified=False"))]
#[case::other_rules(|tools: &mut VerifiedTools| tools.found.rules = Digest::of_bytes(b"other"), Some("McpVerified=False"))]
#[case::invalid_rule(|tools: &mut VerifiedTools| tools.found.rule_errors = vec!["spec.policy: no".into()], Some("McpVerified=False"))]
#[case::not_accepted(|tools: &mut VerifiedTools| (tools.pins, tools.digest) = (None, None), Some("ToolsPinned=False"))]
fn a_job_waits_for_the_first_verification_of_server_and_rules(
    #[case] change: fn(&mut VerifiedTools),
    #[case] waits_for: Option<&str>,
) {
    let found = new_revision("cs-tier-1", Some(&verified(change)), false);
    match waits_for {
        None => assert_eq!(found, Ok(fixtures::revision())),
        Some(what) => {
            let wait = found.unwrap_err();
            assert_eq!(wait.reason, Reason::SkillNotReady);
            assert!(wait.message.contains(what), "{}", wait.message);
        }
    }
}

#[test]
fn a_job_waits_for_the_verification_of_a_server_outside_of_the_cluster() {
    let mut skill = verified(|_| ());
    skill.0.as_mut().unwrap().spec.mcp_server =
        serde_json::from_value(json!({ "uri": "https://tools.example/mcp" })).unwrap();
    let wait = new_revision("cs-tier-1", Some(&skill), false).unwrap_err();
    assert!(wait.message.contains("McpVerified=False"), "{}", wait.message);
}

#[test]
fn a_job_waits_until_the_digest_in_the_spec_is_pinned() {
    let mut skill = verified(|_| ());
    skill.0.as_mut().unwrap().spec.mcp_server.as_mut().unwrap().tools_digest = Some(Digest::of_bytes(b"accepted"));
    assert!(new_revision("cs-tier-1", Some(&skill), false).is_err());
    let pinned = |tools: &mut VerifiedTools| tools.digest = Some(Digest::of_bytes(b"accepted"));
    pinned(skill.0.as_mut().unwrap().status.as_mut().unwrap().tools.as_mut().unwrap());
    assert_eq!(new_revision("cs-tier-1", Some(&skill), false), Ok(fixtures::revision()));
}

#[test]
fn an_attempt_gets_the_pins_of_the_server_of_its_revision() {
    let skill = verified(|_| ());
    let mut compiled = skill.0.as_ref().unwrap().spec.clone();
    assert_eq!(pins(&compiled, Some(&skill)).unwrap().tools[0].name, "refund");
    compiled.mcp_server.as_mut().unwrap().service.as_mut().unwrap().port = 81;
    assert_eq!(pins(&compiled, Some(&skill)), None, "the pins belong to another server");
    compiled.mcp_server = None;
    assert_eq!(pins(&compiled, Some(&skill)), None);
}

/// The status of an object that the operator has not seen.
fn new_status<S: serde::de::DeserializeOwned>() -> S {
    serde_json::from_value(json!({ "observedGeneration": -1 })).unwrap()
}

#[test]
fn a_job_waits_for_a_skill_that_was_just_edited() {
    let mut edited = skill(&ALL_TRUE);
    edited.0.as_mut().unwrap().metadata.generation = Some(3);
    assert_eq!(new_revision("cs-tier-1", Some(&edited), false).unwrap_err().reason, Reason::SkillNotReady);
    edited.0.as_mut().unwrap().status = Some(new_status());
    assert_eq!(new_revision("cs-tier-1", Some(&edited), false).unwrap_err().reason, Reason::SkillNotReady);
    edited.0.as_mut().unwrap().status = None::<SkillStatus>;
    assert_eq!(new_revision("cs-tier-1", Some(&edited), false).unwrap_err().reason, Reason::SkillNotReady);
    assert_eq!(new_revision("cs-tier-1", None, false).unwrap_err().reason, Reason::SkillNotFound);
}

/// The revision of new Jobs of a Skill that needs a validated one, and has passed on none or on this one.
#[rstest]
#[case::validated(Some("orders-1"), false, Ok("orders-1"))]
#[case::a_validation(Some("orders-1"), true, Ok(""))]
#[case::none_is_validated(None, false, Err(Reason::NotValidated))]
#[case::the_first_validation(None, true, Ok(""))]
fn new_jobs_run_on_the_latest_validated_revision(
    #[case] validated: Option<&str>,
    #[case] validates: bool,
    #[case] expected: Result<&str, Reason>,
) {
    let mut required = skill(&[ALL_TRUE[0], ALL_TRUE[1], ALL_TRUE[2], ("Validated", "False", "greets failed")]);
    let spec = &mut required.0.as_mut().unwrap().spec;
    spec.engine = serde_json::from_value(json!({ "validation": { "requireFor": "run" } })).unwrap();
    let status = required.0.as_mut().unwrap().status.as_mut().unwrap();
    status.validated_revision =
        validated.map(|name| RevisionRef { name: name.into(), digest: Digest::of_bytes(b"earlier") });
    match (new_revision("cs-tier-1", Some(&required), validates), expected) {
        (Ok(found), Ok("")) => assert_eq!(found, fixtures::revision()),
        (Ok(found), Ok(name)) => assert_eq!(found.name, name),
        (Err(wait), Err(reason)) => {
            assert_eq!(wait.reason, reason);
            assert!(wait.message.contains("requireFor") && wait.message.contains("greets failed"), "{}", wait.message);
        }
        (found, expected) => panic!("{found:?} instead of {expected:?}"),
    }
}

#[test]
fn a_test_of_an_earlier_revision_ends_before_it_starts() {
    let mut skill = skill(&ALL_TRUE);
    skill.0.as_mut().unwrap().metadata.uid = Some("u-skill".into());
    let current = RevisionRef { name: "cs-tier-1-2".into(), digest: Digest::of_bytes(b"2") };
    let mut job = fixtures::job();
    job.metadata.name = Some(names::validation_job("cs-tier-1", &Digest::of_bytes(b"1")));
    job.spec.mode = Some(bloomery_crds::v1alpha1::JobMode::Validate);
    let refusal = |job: &Job| refuse_other_revision(job, Some(&skill), &current);
    assert_eq!(refusal(&job), Ok(()), "a person has created it");
    job.metadata.owner_references = Some(vec![owned::owner_reference(skill.0.as_ref().unwrap()).unwrap()]);
    let Err(Blocked::Never(end)) = refusal(&job) else { panic!("the Job is not ended") };
    assert!(end.outcome.code == OutcomeCode::Cancelled && end.outcome.message.contains("cs-tier-1-2"), "{end:?}");
    job.metadata.name = Some(names::validation_job("cs-tier-1", &current.digest));
    assert_eq!(refusal(&job), Ok(()));
}

#[test]
fn no_job_starts_with_a_skill_that_is_being_deleted() {
    let mut deleting = skill(&ALL_TRUE);
    let now = k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(fixtures::at(0));
    deleting.0.as_mut().unwrap().metadata.deletion_timestamp = Some(now);
    assert_eq!(new_revision("cs-tier-1", Some(&deleting), false).unwrap_err().reason, Reason::SkillNotFound);
}

fn stored(text: &str) -> ConfigMap {
    let data = [(run::REVISION_KEY.to_owned(), text.to_owned())].into();
    ConfigMap { data: Some(data), ..ConfigMap::default() }
}

#[test]
fn a_revision_is_used_only_if_its_digest_matches() {
    let skill = skill(&ALL_TRUE).0.unwrap();
    let compiled = Revision::new("cs-tier-1", skill.spec, None);
    let sealed = seal(&compiled).unwrap();
    let expected = RevisionRef { name: "cs-tier-1-x".into(), digest: sealed.digest };
    assert_eq!(open_revision(&expected, Some(&stored(&sealed.text))), Ok(compiled));
    for broken in [None, Some(stored("{}"))] {
        let wait = open_revision(&expected, broken.as_ref()).unwrap_err();
        assert!(wait.message.contains("cs-tier-1-x"), "{}", wait.message);
    }
}

#[test]
fn a_script_that_differs_from_its_revision_is_not_mounted() {
    let spec = crate::skill::fixtures::with_scripts().spec;
    let files = spec.scripts.clone().unwrap().files;
    let sealed = seal(&Revision::new("cs-tier-1", spec, None)).unwrap();
    let expected = RevisionRef { name: "cs-tier-1-x".into(), digest: sealed.digest };
    let mut map = stored(&sealed.text);
    let data = map.data.as_mut().unwrap();
    data.extend(files.into_iter().map(|(file, text)| (revision_key(&file), text)));
    assert!(open_revision(&expected, Some(&map)).is_ok());
    for changed in [Some("exit 0"), None] {
        let mut other = map.clone();
        let data = other.data.as_mut().unwrap();
        match changed {
            Some(text) => data.insert("script.check.sh".into(), text.into()),
            None => data.remove("script.check.sh"),
        };
        let wait = open_revision(&expected, Some(&other)).unwrap_err();
        assert_eq!(wait.reason, Reason::SkillNotReady);
        assert!(
            wait.message.contains("its script check.sh was changed after the operator wrote it"),
            "{}",
            wait.message
        );
    }
}

#[test]
fn a_revision_of_a_newer_version_is_not_run() {
    let spec = json!({ "problem": { "statement": "help" }, "policy": { "quorum": 2 } });
    let sealed = seal(&json!({ "version": 1, "skill": "cs-tier-1", "spec": spec })).unwrap();
    let expected = RevisionRef { name: "cs-tier-1-x".into(), digest: sealed.digest };
    let wait = open_revision(&expected, Some(&stored(&sealed.text))).unwrap_err();
    assert_eq!(
        wait.message,
        "the revision cs-tier-1-x cannot be used: the revision has the field spec.policy.quorum, which this version does not know: upgrade Bloomery"
    );
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
    Guarded(Ok(serde_json::from_value(model).unwrap()))
}

#[test]
fn a_ready_model_is_resolved_to_its_endpoint() {
    let spec = json!({
        "provider": "openai", "model": "gpt-5-mini", "baseUrl": "https://x/v1", "timeout": "90s",
        "apiKey": { "secretKeyRef": { "name": "llm", "key": "token" } },
    });
    let key = KeyFile { path: "/etc/bloomery/secrets/llm/token".into(), secret: "llm".into(), key: "token".into() };
    let endpoint = resolve_model("fast", Some(&model_of(&spec, "True"))).unwrap();
    assert_eq!((endpoint.name.as_str(), endpoint.timeout_seconds, endpoint.api_key), ("fast", 90, Some(key)));
    assert_eq!(endpoint.context_window, 128_000);
    assert_eq!(resolve_model("fast", Some(&model_of(&spec, "False"))).unwrap_err().reason, Reason::ModelNotReady);
    let mut new = model_of(&spec, "True");
    new.0.as_mut().unwrap().status = Some(new_status());
    assert_eq!(resolve_model("fast", Some(&new)).unwrap_err().reason, Reason::ModelNotReady);
    assert_eq!(resolve_model("fast", None).unwrap_err().reason, Reason::ModelNotFound);
}

#[test]
fn models_are_resolved_in_order_or_every_missing_one_is_named() {
    let spec = json!({ "provider": "openai", "model": "gpt", "baseUrl": "https://x/v1", "contextWindow": 9000 });
    let named = |name: &str, status: &str| {
        let mut model = model_of(&spec, status);
        model.0.as_mut().unwrap().metadata.name = Some(name.to_owned());
        Some(Arc::new(model))
    };
    let found = resolve_models(&["large", "fast"], |name| named(name, "True")).unwrap();
    let endpoints: Vec<_> = found.iter().map(|model| (model.name.as_str(), model.context_window)).collect();
    assert_eq!(endpoints, [("large", 9000), ("fast", 9000)]);
    let wait =
        resolve_models(&["large", "fast", "kind"], |name| if name == "large" { named(name, "True") } else { None });
    let wait = wait.unwrap_err();
    assert_eq!(wait.reason, Reason::ModelNotFound);
    assert!(wait.message.contains("Model fast") && wait.message.contains("Model kind"), "{}", wait.message);
    let wait = resolve_models(&["large"], |name| named(name, "False")).unwrap_err();
    assert_eq!(wait.reason, Reason::ModelNotReady);
    assert!(wait.message.contains("Model large"), "{}", wait.message);
}

/// Finds a ready Model by name in a list of names with their fallbacks.
fn find_model(models: &[(&str, &[&str])], name: &str) -> Option<Arc<Guarded<Model>>> {
    let (_, fallback) = models.iter().find(|(known, _)| *known == name)?;
    let spec = json!({ "provider": "openai", "model": "gpt", "baseUrl": "https://x/v1", "fallback": fallback });
    let mut model = model_of(&spec, "True");
    model.0.as_mut().unwrap().metadata.name = Some(name.to_owned());
    Some(Arc::new(model))
}

#[test]
fn fallbacks_are_resolved_after_the_named_models() {
    let all: &[(&str, &[&str])] = &[("large", &["fast"]), ("fast", &["local"]), ("local", &[]), ("kind", &["local"])];
    let endpoints: Vec<(String, Vec<String>)> = resolve_models(&["large", "kind"], |name| find_model(all, name))
        .unwrap()
        .into_iter()
        .map(|endpoint| (endpoint.name, endpoint.fallback))
        .collect();
    let expected = json!([["large", ["fast", "local"]], ["kind", ["local"]], ["fast", ["local"]], ["local", []]]);
    assert_eq!(json!(endpoints), expected);
}

#[rstest]
#[case::missing(&[("large", &["fast"][..])], "the Model large names the Model fast, which does not exist")]
#[case::in_a_circle(&[("large", &["fast"][..]), ("fast", &["large"][..])], "large -> fast -> large")]
fn invalid_fallbacks_are_named(#[case] all: &[(&str, &[&str])], #[case] why: &str) {
    let wait = resolve_models(&["large"], |name| find_model(all, name)).unwrap_err();
    assert_eq!(wait.reason, Reason::ModelNotReady);
    assert!(wait.message.contains(why), "{}", wait.message);
}

#[test]
fn every_field_of_a_model_is_passed_on() {
    let spec = json!({
        "provider": "anthropic", "model": "claude", "baseUrl": "https://x/v1", "maxOutputTokens": 2000,
        "ca": { "configMapKeyRef": { "name": "corporate", "key": "ca.crt" } }, "proxy": "http://proxy:3128",
    });
    let endpoint = resolve_model("fast", Some(&model_of(&spec, "True"))).unwrap();
    let ca = endpoint.ca.unwrap();
    assert_eq!(ca.path, "/etc/bloomery/configmaps/corporate/ca.crt");
    assert_eq!(ca.object.to_string(), "ConfigMap `corporate`");
    assert_eq!((endpoint.proxy.as_deref(), endpoint.max_output_tokens), (Some("http://proxy:3128"), Some(2000)));
    let mut spec = spec;
    spec["ca"] = json!({ "secretKeyRef": { "name": "llm", "key": "ca.crt" } });
    let ca = resolve_model("fast", Some(&model_of(&spec, "True"))).unwrap().ca.unwrap();
    assert_eq!(
        (ca.path.as_str(), ca.object.to_string()),
        ("/etc/bloomery/secrets/llm/ca.crt", "Secret `llm`".to_owned())
    );
}

#[rstest]
#[case(&["ReadWriteOnce"], true)]
#[case(&["ReadWriteOnce", "ReadWriteMany"], false)]
fn the_access_modes_of_the_claim_decide_if_pods_share_a_node(#[case] modes: &[&str], #[case] single_node: bool) {
    let claim = serde_json::from_value(json!({ "spec": { "accessModes": modes } })).unwrap();
    assert_eq!(is_single_node(Some(&claim)), single_node);
    assert!(is_single_node(None));
}
