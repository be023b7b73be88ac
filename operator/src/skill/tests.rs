//! Tests of single reconciles with an API server in memory. Each operator has just started, as after a crash.

use super::build::PreparedMcp;
use super::{build, fixtures, reconcile, skill_of_ended_job, skills_of_key_wait, skills_of_list, validate};
use crate::apply::{ApplyResult, KnownObject};
use crate::caches::Guarded;
use crate::context::Context;
use crate::job::fixtures::api::FakeApi;
use bloomery_crds::conditions::{ConditionType, find, is_true};
use bloomery_crds::names::{ANNOTATION_APPLIED, ANNOTATION_PROBE_PART, validation_job};
use bloomery_crds::probe::ProbePart;
use bloomery_crds::v1alpha1::{Job, RevisionRef, Skill};
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;
use kube::runtime::controller::Action;
use rstest::rstest;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const SKILL: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skills/orders";
const MODEL: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/models/default";
const JOB: &str = "/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs/refund";
const CLAIM: &str = "/api/v1/namespaces/acme/persistentvolumeclaims/bloomery-memory";
const WORKER: &str = "/api/v1/namespaces/acme/serviceaccounts/orders-worker";
const ACCOUNT: &str = "/api/v1/namespaces/acme/serviceaccounts/orders-mcp";
const SERVICE: &str = "/api/v1/namespaces/acme/services/orders-mcp";
const BUDGET: &str = "/apis/policy/v1/namespaces/acme/poddisruptionbudgets/orders-mcp";
const DEPLOYMENT: &str = "/apis/apps/v1/namespaces/acme/deployments/orders-mcp";

/// Stores a Skill, and the Model that it names.
fn put(api: &FakeApi, skill: &Skill) {
    api.put(MODEL, serde_json::to_value(fixtures::model("default")).unwrap());
    let mut stored = serde_json::to_value(skill).unwrap();
    if skill.status.is_none() {
        // As the API server does.
        stored["status"] = json!({ "observedGeneration": -1 });
    }
    api.put(SKILL, stored);
}

/// A tenant whose Skill has been provisioned.
async fn provisioned(skill: &Skill) -> FakeApi {
    let api = FakeApi::default();
    put(&api, skill);
    reconcile_once(&api).await;
    api.writes();
    api
}

/// Reconciles the Skill once, with an operator that has just started.
async fn reconcile_once(api: &FakeApi) -> Action {
    let context = api.operator().await;
    let skill = serde_json::from_value(api.get(SKILL)).unwrap();
    Box::pin(reconcile(skill, context, Arc::default())).await.unwrap()
}

/// An operator that has just started and writes network policies.
async fn isolating_operator(api: &FakeApi) -> Arc<Context> {
    let network = json!({"policies": true, "deny": ["10.0.0.0/24"], "operator": {"app": "bloomery"}});
    api.operator_with(&[&format!("--network={network}")]).await
}

fn conditions(api: &FakeApi) -> Vec<Condition> {
    let skill: Skill = serde_json::from_value(api.get(SKILL)).unwrap();
    skill.status.unwrap().conditions
}

fn reason(api: &FakeApi, kind: ConditionType) -> String {
    find(&conditions(api), kind).unwrap().reason.clone()
}

/// The sorted writes. Names that contain a digest are replaced by `*`.
fn writes(api: &FakeApi) -> Vec<String> {
    let mut writes = api.writes();
    for write in &mut writes {
        if let Some((before, _)) = write.split_once("/configmaps/") {
            *write = format!("{before}/configmaps/*");
        }
    }
    writes.sort();
    writes
}

#[tokio::test]
async fn a_skill_is_provisioned_with_eight_writes_and_then_costs_none() {
    let api = FakeApi::default();
    put(&api, &fixtures::with_container());
    reconcile_once(&api).await;
    let expected = [
        format!("apply {ACCOUNT}"),
        format!("apply {DEPLOYMENT}"),
        format!("apply {SERVICE}"),
        format!("apply {BUDGET}"),
        format!("apply {WORKER}"),
        "apply /api/v1/namespaces/acme/configmaps/*".to_owned(),
        format!("create {CLAIM}"),
        format!("status {SKILL}"),
    ];
    let mut found = writes(&api);
    found.sort();
    let mut expected = expected.to_vec();
    expected.sort();
    assert_eq!(found, expected);
    assert_eq!(reason(&api, ConditionType::Ready), "Progressing");
    reconcile_once(&api).await;
    reconcile_once(&api).await;
    assert_eq!(writes(&api), Vec::<String>::new());
}

#[tokio::test]
async fn a_skill_that_sets_what_it_may_not_is_not_accepted() {
    let mut skill = fixtures::with_container();
    skill.spec.pods = serde_json::from_value(json!({"mcp": {"nodeSelector": {"gpu": "yes"}}})).unwrap();
    let api = FakeApi::default();
    put(&api, &skill);
    reconcile_once(&api).await;
    let accepted = find(&conditions(&api), ConditionType::Accepted).unwrap().clone();
    assert_eq!(accepted.reason, "Invalid");
    assert!(accepted.message.contains("spec.pods.mcp.nodeSelector: is not allowed"), "{}", accepted.message);
}

#[rstest]
#[case::value(|deployment: &mut Value| deployment["spec"]["progressDeadlineSeconds"] = json!(3))]
#[case::label(|deployment: &mut Value| deployment["metadata"]["labels"]["bloomery.dev/skill"] = json!("other"))]
#[case::image(|deployment: &mut Value| deployment["spec"]["template"]["spec"]["containers"][0]["image"] = json!("evil:1"))]
#[tokio::test]
async fn a_change_by_another_writer_is_reverted(#[case] change: fn(&mut Value)) {
    let api = provisioned(&fixtures::with_container()).await;
    let before = api.get(DEPLOYMENT)["spec"].clone();
    api.change(DEPLOYMENT, change);
    reconcile_once(&api).await;
    assert_eq!(writes(&api), [format!("apply {DEPLOYMENT}")]);
    assert_eq!(api.get(DEPLOYMENT)["spec"], before);
}

#[rstest]
#[case::selector(SERVICE, |service: &mut Value| service["spec"]["selector"]["team"] = json!("a"))]
#[case::port(SERVICE, |service: &mut Value| service["spec"]["ports"].as_array_mut().unwrap().push(json!({"name": "x", "port": 9})))]
#[case::env(DEPLOYMENT, |deployment: &mut Value| container(deployment)["env"].as_array_mut().unwrap().push(json!({"name": "X", "value": "1"})))]
#[case::command(DEPLOYMENT, |deployment: &mut Value| container(deployment)["command"] = json!(["sh"]))]
#[case::privileged(DEPLOYMENT, |deployment: &mut Value| container(deployment)["securityContext"]["privileged"] = json!(true))]
#[tokio::test]
async fn what_another_writer_adds_to_an_exclusive_part_is_removed(#[case] path: &str, #[case] change: fn(&mut Value)) {
    let api = provisioned(&fixtures::with_container()).await;
    let before = api.get(path)["spec"].clone();
    api.change(path, change);
    reconcile_once(&api).await;
    assert_eq!(writes(&api), [format!("patch {path}")]);
    assert_eq!(api.get(path)["spec"], before);
    reconcile_once(&api).await;
    assert_eq!(writes(&api), [""; 0]);
}

fn container(deployment: &mut Value) -> &mut Value {
    &mut deployment["spec"]["template"]["spec"]["containers"][0]
}

#[rstest]
#[case::replicas(|deployment: &mut Value| deployment["spec"]["replicas"] = json!(3))]
#[case::label(|deployment: &mut Value| deployment["metadata"]["labels"]["team"] = json!("a"))]
#[case::annotation(|deployment: &mut Value| deployment["metadata"]["annotations"]["team"] = json!("a"))]
#[case::sidecar(|deployment: &mut Value| deployment["spec"]["template"]["spec"]["containers"].as_array_mut().unwrap().push(json!({"name": "mesh"})))]
#[tokio::test]
async fn what_another_writer_adds_elsewhere_is_left(#[case] change: fn(&mut Value)) {
    let api = provisioned(&fixtures::with_container()).await;
    api.change(DEPLOYMENT, change);
    reconcile_once(&api).await;
    assert_eq!(writes(&api), [""; 0]);
}

#[tokio::test]
async fn an_addition_that_comes_back_each_time_is_a_result_and_not_a_loop() {
    let api = provisioned(&fixtures::with_container()).await;
    let context = api.operator().await;
    let skill = validate::validate(&fixtures::with_container()).unwrap();
    let PreparedMcp::Managed(managed) =
        build::build(&skill, &context.settings, &context.server_tokens.public_keys().unwrap()).unwrap().mcp
    else {
        panic!()
    };
    let mut results = Vec::new();
    for _ in 0..5 {
        api.change(SERVICE, |service| service["spec"]["selector"]["team"] = json!("a"));
        let live: Service = serde_json::from_value(api.get(SERVICE)).unwrap();
        results.push(context.applier.apply(&managed.service, KnownObject::full(&live)).await.unwrap());
    }
    assert_eq!(writes(&api).len(), 3);
    let reverted = ApplyResult::Reverted(vec!["spec.selector.team".to_owned()]);
    assert_eq!(results[2..], [ApplyResult::CacheBehind, reverted.clone(), reverted]);
}

#[tokio::test]
async fn a_field_that_the_skill_no_longer_sets_is_removed() {
    let mut skill = fixtures::with_container();
    let api = provisioned(&skill).await;
    skill.spec.mcp_server.as_mut().unwrap().container.as_mut().unwrap().args.clear();
    put(&api, &skill);
    reconcile_once(&api).await;
    assert!(writes(&api).contains(&format!("apply {DEPLOYMENT}")));
    assert!(api.get(DEPLOYMENT)["spec"]["template"]["spec"]["containers"][0]["args"].is_null());
}

/// The earlier port and variables are the operator's own, and no additions of others.
#[tokio::test]
async fn a_changed_skill_costs_one_apply_of_each_object() {
    let mut skill = fixtures::with_container();
    let api = provisioned(&skill).await;
    let container = skill.spec.mcp_server.as_mut().unwrap().container.as_mut().unwrap();
    container.port += 1;
    container.env.clear();
    put(&api, &skill);
    reconcile_once(&api).await;
    let of_server = writes(&api).into_iter().filter(|write| write.ends_with(SERVICE) || write.ends_with(DEPLOYMENT));
    let mut expected = [format!("apply {SERVICE}"), format!("apply {DEPLOYMENT}")];
    expected.sort();
    assert_eq!(of_server.collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn an_addition_because_of_which_a_changed_skill_is_refused_is_removed() {
    let mut skill = fixtures::with_container();
    let api = provisioned(&skill).await;
    api.change(DEPLOYMENT, |deployment| container(deployment)["securityContext"]["privileged"] = json!(true));
    skill.spec.mcp_server.as_mut().unwrap().container.as_mut().unwrap().args.clear();
    put(&api, &skill);
    for _ in 0..2 {
        reconcile_once(&api).await;
    }
    let mut deployment = api.get(DEPLOYMENT);
    let container = container(&mut deployment);
    assert_eq!((&container["securityContext"]["privileged"], &container["args"]), (&Value::Null, &Value::Null));
    assert_eq!(reason(&api, ConditionType::Ready), "Progressing");
}

#[tokio::test]
async fn an_object_of_another_owner_is_neither_changed_nor_deleted() {
    let api = FakeApi::default();
    let foreign = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"namespace": "acme", "name": "orders-mcp", "uid": "foreign"},
    });
    api.put(ACCOUNT, foreign);
    put(&api, &fixtures::with_container());
    reconcile_once(&api).await;
    assert!(!writes(&api).iter().any(|write| write.ends_with(ACCOUNT)));
    assert_eq!(reason(&api, ConditionType::McpAvailable), "NameTaken");
    put(&api, &fixtures::without_server());
    reconcile_once(&api).await;
    assert_eq!(api.get(ACCOUNT)["metadata"]["uid"], "foreign");
}

#[tokio::test]
async fn an_object_that_another_writer_creates_concurrently_is_not_taken_over() {
    let api = FakeApi::default();
    put(&api, &fixtures::with_container());
    // The object sets no field that the wanted object sets to another value. So a server-side apply finds no conflict, and would
    // take it over.
    let foreign = json!({
        "apiVersion": "v1", "kind": "ServiceAccount",
        "metadata": {"namespace": "acme", "name": "orders-mcp", "uid": "foreign"},
    });
    api.meanwhile(ACCOUNT, foreign);
    let skill = serde_json::from_value(api.get(SKILL)).unwrap();
    let error = Box::pin(reconcile(skill, api.operator().await, Arc::default())).await.unwrap_err();
    assert!(error.is_conflict(), "{error}");
    writes(&api);
    reconcile_once(&api).await;
    let found = writes(&api);
    assert!(!found.iter().any(|write| write.ends_with(ACCOUNT)), "{found:?}");
    assert_eq!(reason(&api, ConditionType::McpAvailable), "NameTaken");
    let metadata = &api.get(ACCOUNT)["metadata"];
    assert_eq!((&metadata["uid"], &metadata["ownerReferences"]), (&json!("foreign"), &Value::Null));
}

#[tokio::test]
async fn an_existing_memory_claim_is_used_unchanged() {
    let api = FakeApi::default();
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"namespace": "acme", "name": "bloomery-memory", "uid": "theirs"},
        "spec": {"storageClassName": "theirs"}, "status": {"phase": "Bound"},
    });
    api.put(CLAIM, claim.clone());
    put(&api, &fixtures::without_server());
    reconcile_once(&api).await;
    assert_eq!(api.get(CLAIM)["spec"], claim["spec"]);
    assert!(api.get(CLAIM)["metadata"]["annotations"][ANNOTATION_APPLIED].is_null());
    assert_eq!(reason(&api, ConditionType::MemoryReady), "Bound");
    assert_eq!(reason(&api, ConditionType::Ready), "Ready");
}

#[tokio::test]
async fn an_mcp_server_that_moves_into_the_pods_of_jobs_is_deleted() {
    let api = provisioned(&fixtures::with_container()).await;
    put(&api, &fixtures::with_sidecar());
    reconcile_once(&api).await;
    let found = writes(&api);
    for path in [ACCOUNT, DEPLOYMENT, SERVICE, BUDGET] {
        assert!(found.contains(&format!("delete {path}")), "{found:?}");
    }
    assert_eq!(reason(&api, ConditionType::McpAvailable), "Available");
    assert!(!found.iter().any(|write| write.starts_with("apply") && write.contains("orders-mcp")), "{found:?}");
}

#[tokio::test]
async fn an_mcp_server_that_the_skill_no_longer_has_is_deleted() {
    let api = provisioned(&fixtures::with_container()).await;
    put(&api, &fixtures::with_service());
    reconcile_once(&api).await;
    let found = writes(&api);
    for path in [ACCOUNT, DEPLOYMENT, SERVICE] {
        assert!(found.contains(&format!("delete {path}")), "{found:?}");
    }
    assert!(!found.contains(&format!("delete {WORKER}")));
    assert_eq!(reason(&api, ConditionType::McpAvailable), "ServiceNotFound");
}

#[tokio::test]
async fn an_mcp_server_is_kept_while_a_job_runs_on_a_revision_with_it() {
    let api = provisioned(&fixtures::with_container()).await;
    let first = api.get(SKILL)["status"]["revision"].clone();
    api.put(JOB, job_on(&first));
    put(&api, &fixtures::without_server());
    reconcile_once(&api).await;
    assert_eq!(deletions(&api), [""; 0]);
    api.change(JOB, |job| job["status"]["phase"] = json!("Succeeded"));
    reconcile_once(&api).await;
    assert_eq!(deletions(&api), [ACCOUNT, SERVICE, DEPLOYMENT, BUDGET].map(|path| format!("delete {path}")));
}

#[tokio::test]
async fn the_end_and_the_deletion_of_a_job_on_an_earlier_revision_wake_its_skill() {
    let api = provisioned(&fixtures::without_server()).await;
    let current = api.get(SKILL)["status"]["revision"].clone();
    let mut revision = current.clone();
    revision["name"] = json!("orders-earlier");
    api.put(JOB, job_on(&revision));
    let context = api.operator().await;
    let woken = |job: Value| {
        let job = serde_json::from_value::<Guarded<Job>>(job).unwrap();
        skill_of_ended_job(context.caches.skills.store(), context.caches.jobs.store(), &job).len()
    };
    assert_eq!(woken(job_on(&revision)), 0, "the Job needs its revision");
    for (revision, times) in [(&revision, 1), (&current, 0)] {
        let mut finished = job_on(revision);
        finished["status"]["phase"] = json!("Failed");
        assert_eq!(woken(finished), times);
    }
    for (field, value) in [("name", "another"), ("uid", "new")] {
        let mut other = job_on(&revision);
        other["metadata"][field] = json!(value);
        assert_eq!(woken(other), 1, "the Job is not in the cache");
    }
}

#[rstest]
#[tokio::test]
async fn a_skill_shows_that_a_job_waits_for_the_key_of_its_model_until_the_job_continues(
    #[values("orders", "another")] skill_of_job: &str,
) {
    let api = provisioned(&fixtures::without_server()).await;
    let mut waiting = job_on(&api.get(SKILL)["status"]["revision"]);
    waiting["spec"]["skill"] = json!(skill_of_job);
    let read = |job: &Value| serde_json::from_value::<Guarded<Job>>(job.clone()).unwrap();
    let context = api.operator().await;
    assert_eq!(skills_of_key_wait(context.caches.skills.store(), &read(&waiting)), [], "the Job waits for nothing");
    waiting["status"]["attempt"] =
        json!({ "number": 1, "pod": "refund-1", "waitingForKey": { "name": "llm", "key": "token" } });
    assert_eq!(skills_of_key_wait(context.caches.skills.store(), &read(&waiting)).len(), 1);
    api.put(JOB, waiting.clone());
    reconcile_once(&api).await;
    assert_eq!(reason(&api, ConditionType::Ready), "SecretMissing");
    waiting["status"]["attempt"].as_object_mut().unwrap().remove("waitingForKey");
    let context = api.operator().await;
    assert_eq!(skills_of_key_wait(context.caches.skills.store(), &read(&waiting)).len(), 1, "the Skill still shows it");
    api.put(JOB, waiting);
    reconcile_once(&api).await;
    assert_eq!(reason(&api, ConditionType::Ready), "Ready");
}

/// The deletions since the writes were last read.
fn deletions(api: &FakeApi) -> Vec<String> {
    writes(api).into_iter().filter(|write| write.starts_with("delete")).collect()
}

/// An unfinished Job on this revision.
fn job_on(revision: &Value) -> Value {
    json!({
        "apiVersion": "bloomery.dev/v1alpha1", "kind": "Job",
        "metadata": {"namespace": "acme", "name": "refund", "uid": "u-job"},
        "spec": {"skill": "orders", "goal": "Refund"},
        "status": {"phase": "Running", "skillRevision": revision},
    })
}

#[rstest]
#[case::a_job(json!(null), 2)]
#[case::a_job_of_a_newer_version(json!(2), 0)]
#[tokio::test]
async fn an_earlier_revision_is_kept_while_a_job_runs_on_it(#[case] quorum: Value, #[case] deleted: usize) {
    let mut skill = fixtures::without_server();
    let api = provisioned(&skill).await;
    let revision = |api: &FakeApi| api.get(SKILL)["status"]["revision"].clone();
    let first = revision(&api);
    api.put(JOB, job_on(&first));
    api.change(JOB, |job| job["spec"]["quorum"] = quorum);
    for version in 1..6 {
        let status = serde_json::from_value(api.get(SKILL)["status"].clone()).unwrap();
        skill.status = Some(status);
        skill.spec.version = Some(version);
        put(&api, &skill);
        reconcile_once(&api).await;
    }
    let path = format!("/api/v1/namespaces/acme/configmaps/{}", first["name"].as_str().unwrap());
    assert_eq!(api.get(&path)["metadata"]["name"], first["name"]);
    assert_eq!(deletions(&api).len(), deleted);
    if deleted > 0 {
        api.change(JOB, |job| job["status"]["phase"] = json!("Succeeded"));
        reconcile_once(&api).await;
        assert_eq!(api.writes(), [format!("delete {path}")]);
    }
}

#[tokio::test]
async fn a_skill_beyond_a_lowered_limit_is_not_ready_and_its_denied_tools_are_named() {
    let annotate = |api: &FakeApi, annotations: Value| {
        let metadata = json!({ "name": "acme", "uid": "acme-uid", "annotations": annotations });
        api.put("/api/v1/namespaces/acme", json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": metadata }));
    };
    let mut skill = fixtures::with_container();
    skill.spec.tools = serde_json::from_value(json!([{ "name": "send_money" }, { "name": "get_order" }])).unwrap();
    let api = provisioned(&skill).await;
    annotate(&api, json!({ "bloomery.dev/max-steps": "7", "bloomery.dev/blocked-tools": "send_*" }));
    reconcile_once(&api).await;
    assert_eq!(reason(&api, ConditionType::WithinLimits), "BeyondLimit");
    assert_eq!(reason(&api, ConditionType::Ready), "BeyondLimit");
    annotate(&api, json!({ "bloomery.dev/blocked-tools": "send_*" }));
    reconcile_once(&api).await;
    let after = conditions(&api);
    assert!(find(&after, ConditionType::WithinLimits).is_none(), "{after:?}");
    assert!(!is_true(&after, ConditionType::Stalled), "{after:?}");
    let denied = "The tool policy of the namespace denies tools that the Skill declares: send_money.";
    assert_eq!(find(&after, ConditionType::ToolsAllowed).unwrap().message, denied);
}

#[tokio::test]
async fn a_skill_that_is_being_deleted_is_ignored() {
    let api = FakeApi::default();
    let mut skill = fixtures::with_container();
    skill.metadata.deletion_timestamp = Some(serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap());
    put(&api, &skill);
    reconcile_once(&api).await;
    assert_eq!(api.writes(), Vec::<String>::new());
}

/// The path of the current revision of the Skill.
fn revision_path(api: &FakeApi) -> String {
    let name = api.get(SKILL)["status"]["revision"]["name"].as_str().unwrap().to_owned();
    format!("/api/v1/namespaces/acme/configmaps/{name}")
}

/// A Skill with a feature whose revisions the operator tests, some time after its revision was created. Returns the path of the Job, too.
async fn tested() -> (FakeApi, String) {
    let mut skill = fixtures::without_server();
    let feature = json!({"name": "greets", "testScenario": "x", "expectedResult": "y"});
    skill.spec.features = serde_json::from_value(json!([feature])).unwrap();
    let engine = json!({"validation": {"onChange": true, "requireFor": "run"}});
    skill.spec.engine = serde_json::from_value(engine).unwrap();
    let api = provisioned(&skill).await;
    api.change(&revision_path(&api), |map| map["metadata"]["creationTimestamp"] = json!("2026-01-01T00:00:00Z"));
    let revision: RevisionRef = serde_json::from_value(api.get(SKILL)["status"]["revision"].clone()).unwrap();
    let job = validation_job("orders", &revision.digest);
    (api, format!("/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs/{job}"))
}

/// Ends the Job with this result of the feature.
fn end_test(api: &FakeApi, job: &str, passed: bool) {
    let revision = api.get(SKILL)["status"]["revision"].clone();
    api.change(job, |job| {
        job["status"] = json!({
            "phase": if passed { "Succeeded" } else { "Failed" }, "completionTime": "2026-01-01T00:01:00Z",
            "skillRevision": revision,
            "features": [{"name": "greets", "passed": passed, "tokens": 7, "seconds": 1}],
        });
    });
}

#[tokio::test]
async fn a_revision_is_tested_once() {
    let (api, job) = tested().await;
    reconcile_once(&api).await;
    assert_eq!(api.writes(), [format!("create {job}")]);
    reconcile_once(&api).await;
    assert_eq!(api.writes(), [""; 0]);
    end_test(&api, &job, false);
    reconcile_once(&api).await;
    assert_eq!(reason(&api, ConditionType::Validated), "FeatureFailed");
    assert!(api.get(SKILL)["status"]["validatedRevision"].is_null());
    api.remove(&job);
    api.writes();
    reconcile_once(&api).await;
    assert_eq!(api.writes(), [""; 0], "the results are known");
}

#[tokio::test]
async fn the_validated_revision_is_kept_for_new_jobs() {
    let (api, job) = tested().await;
    let (first, before) = (revision_path(&api), api.get(&revision_path(&api)));
    let validated = api.get(SKILL)["status"]["revision"].clone();
    reconcile_once(&api).await;
    end_test(&api, &job, true);
    reconcile_once(&api).await;
    assert_eq!(reason(&api, ConditionType::Validated), "FeaturesPassed");
    for generation in 10..15 {
        api.change(SKILL, |skill| {
            skill["spec"]["problem"]["statement"] = json!(format!("Statement {generation}"));
            skill["metadata"]["generation"] = json!(generation);
        });
        reconcile_once(&api).await;
        reconcile_once(&api).await;
    }
    assert_eq!(api.get(SKILL)["status"]["validatedRevision"], validated);
    assert_eq!(reason(&api, ConditionType::Validated), "NotValidated");
    assert_eq!(api.get(&first), before);
}

/// Replaces the revision by an object with the same metadata and another UID.
fn replace_revision(api: &FakeApi, change: impl FnOnce(&mut Value)) {
    api.change(&revision_path(api), |map| {
        map["metadata"]["uid"] = json!("another");
        change(map);
    });
}

#[tokio::test]
async fn a_replaced_revision_stalls_the_skill_until_it_is_deleted() {
    let api = provisioned(&fixtures::without_server()).await;
    assert_eq!(reason(&api, ConditionType::Ready), "Ready");
    let path = revision_path(&api);
    let before = api.get(&path)["data"].clone();
    replace_revision(&api, |map| map["data"]["revision.json"] = json!("{}"));
    assert_eq!(reconcile_once(&api).await, Action::requeue(std::time::Duration::from_mins(1)));
    assert_eq!(api.writes(), [format!("status {SKILL}")], "an immutable object is not written");
    assert_eq!(
        (reason(&api, ConditionType::Accepted), reason(&api, ConditionType::Ready)),
        ("Replaced".to_owned(), "Replaced".to_owned())
    );
    let conditions = conditions(&api);
    assert!(is_true(&conditions, ConditionType::Stalled));
    let message = &find(&conditions, ConditionType::Accepted).unwrap().message;
    assert!(message.contains(path.rsplit('/').next().unwrap()) && message.contains("kubectl delete"), "{message}");
    reconcile_once(&api).await;
    assert_eq!(api.writes(), [""; 0]);

    api.remove(&path);
    assert_eq!(reconcile_once(&api).await, Action::await_change());
    assert_eq!(api.writes(), [format!("apply {path}"), format!("status {SKILL}")]);
    assert_eq!((&api.get(&path)["data"], reason(&api, ConditionType::Ready).as_str()), (&before, "Ready"));
}

#[rstest]
#[case::same_content(|_: &mut Value| (), false)]
#[case::without_labels(|map: &mut Value| { map["metadata"]["labels"] = json!({}); }, true)]
#[case::other_content_and_mutable(|map: &mut Value| { map["immutable"] = json!(false); map["data"]["revision.json"] = json!("{}"); }, true)]
#[tokio::test]
async fn a_replaced_revision_is_corrected_if_possible(#[case] change: fn(&mut Value), #[case] is_written: bool) {
    let api = provisioned(&fixtures::without_server()).await;
    let (path, before) = (revision_path(&api), api.get(&revision_path(&api))["data"].clone());
    replace_revision(&api, change);
    reconcile_once(&api).await;
    assert_eq!(api.writes(), if is_written { vec![format!("apply {path}")] } else { vec![] });
    assert_eq!((&api.get(&path)["data"], reason(&api, ConditionType::Ready).as_str()), (&before, "Ready"));
}

#[tokio::test]
async fn the_revision_is_read_from_the_api_server_once() {
    let api = provisioned(&fixtures::without_server()).await;
    let (path, context) = (revision_path(&api), api.operator().await);
    api.reads();
    for reads in [1, 0] {
        let skill = serde_json::from_value(api.get(SKILL)).unwrap();
        Box::pin(reconcile(skill, context.clone(), Arc::default())).await.unwrap();
        assert_eq!(api.reads().iter().filter(|read| **read == path).count(), reads);
    }
}

const LISTS: &str = "/api/v1/namespaces/acme/configmaps/bank-lists";

/// The ConfigMap of the list.
fn config_map(payees: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "acme", "name": "bank-lists", "uid": "u-lists"},
        "data": {"payees": payees},
    })
}

/// The list in the current revision of the Skill.
fn compiled_list(api: &FakeApi) -> Value {
    let text = api.get(&revision_path(api))["data"]["revision.json"].clone();
    let revision: Value = serde_json::from_str(text.as_str().unwrap()).unwrap();
    assert_eq!(revision["spec"]["policy"]["listsFrom"], Value::Null, "the worker needs no ConfigMap");
    revision["spec"]["policy"]["lists"]["payees"].clone()
}

#[tokio::test]
async fn a_changed_config_map_compiles_a_new_revision() {
    let api = FakeApi::default();
    api.put(LISTS, config_map("ada\nbob\n"));
    put(&api, &fixtures::with_list());
    reconcile_once(&api).await;
    assert_eq!((compiled_list(&api), reason(&api, ConditionType::Ready)), (json!(["ada", "bob"]), "Ready".to_owned()));
    let (first, before) = (revision_path(&api), api.get(&revision_path(&api)));
    api.put(JOB, job_on(&api.get(SKILL)["status"]["revision"]));
    api.put(LISTS, config_map("ada\n"));
    reconcile_once(&api).await;
    assert_eq!(compiled_list(&api), json!(["ada"]));
    assert_ne!(revision_path(&api), first);
    assert_eq!(api.get(&first), before, "the Job keeps its revision");
    api.writes();
    reconcile_once(&api).await;
    assert_eq!(api.writes(), [""; 0]);
}

#[tokio::test]
async fn a_skill_is_not_ready_while_a_config_map_of_its_lists_is_missing() {
    let api = provisioned(&fixtures::with_list()).await;
    assert_eq!(reason(&api, ConditionType::Ready), "ListNotFound");
    assert!(api.get(SKILL)["status"]["revision"].is_null());
    api.put(LISTS, config_map("ada"));
    reconcile_once(&api).await;
    assert_eq!(reason(&api, ConditionType::Ready), "Ready");
    let revision = api.get(SKILL)["status"]["revision"].clone();
    api.change(LISTS, |lists| lists["data"] = json!({"payee": "ada"}));
    reconcile_once(&api).await;
    let conditions = conditions(&api);
    let accepted = find(&conditions, ConditionType::Accepted).unwrap();
    assert_eq!(accepted.reason, "ListNotFound");
    assert_eq!(
        accepted.message,
        "spec.policy.listsFrom.payees: the ConfigMap bank-lists has no key payees; it has payee: add the key, and the Skill \
         becomes ready by itself."
    );
    assert!(is_true(&conditions, ConditionType::Reconciling));
    assert_eq!(api.get(SKILL)["status"]["revision"], revision);
}

#[tokio::test]
async fn a_config_map_wakes_the_skills_that_name_it_and_its_data_is_not_cached() {
    let api = FakeApi::default();
    api.put(LISTS, config_map("ada"));
    put(&api, &fixtures::with_list());
    let context = api.operator().await;
    let cached = context.caches.config_maps.get("acme", "bank-lists").unwrap();
    assert!(serde_json::to_value(cached.as_ref()).unwrap().get("data").is_none());
    let skills = context.caches.skills.store();
    assert_eq!(skills_of_list(skills, &cached).len(), 1);
    for (field, value) in [("name", "other"), ("namespace", "other")] {
        let mut other = config_map("ada");
        other["metadata"][field] = json!(value);
        assert_eq!(skills_of_list(skills, &serde_json::from_value(other).unwrap()), []);
    }
    reconcile_once(&api).await;
    let context = api.operator().await;
    assert_eq!(context.caches.config_maps.store().len(), 1, "revisions are in another cache");
}

const NAMED_SERVICE: &str = "/api/v1/namespaces/acme/services/shared-orders";
const NAMED_SLICE: &str = "/apis/discovery.k8s.io/v1/namespaces/acme/endpointslices/shared-orders-1";

/// A slice of the Service that the Skill names, with a ready pod.
fn ready_slice() -> Value {
    json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"namespace": "acme", "name": "shared-orders-1", "labels": {"kubernetes.io/service-name": "shared-orders"}},
        "endpoints": [{"addresses": ["10.0.0.1"], "conditions": {"ready": true}}],
    })
}

/// A tenant whose Skill has an MCP server with a ready pod, and the path of the pod of its first probe.
async fn probing() -> (FakeApi, String) {
    let api = FakeApi::default();
    api.put(
        NAMED_SERVICE,
        json!({
            "apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "acme", "name": "shared-orders"},
            "spec": {"ports": [{"port": 8090}]},
        }),
    );
    api.put(NAMED_SLICE, ready_slice());
    put(&api, &fixtures::with_service());
    reconcile_once(&api).await;
    let created = writes(&api)
        .into_iter()
        .find_map(|write| Some(write.strip_prefix("create ")?.to_owned()).filter(|path| path.contains("/pods/")));
    let pod = created.unwrap();
    api.change(&pod, |pod| pod["metadata"]["creationTimestamp"] = json!(Timestamp::now().to_string()));
    (api, pod)
}

#[tokio::test]
async fn a_probe_starts_once_and_is_deleted_after_its_report() {
    let (api, pod) = probing().await;
    assert_eq!(reason(&api, ConditionType::McpVerified), "Verifying");
    assert_eq!(reason(&api, ConditionType::Ready), "Verifying");
    reconcile_once(&api).await;
    assert_eq!(writes(&api), [""; 0]);
    let skill: Skill = serde_json::from_value(api.get(SKILL)).unwrap();
    let part: ProbePart =
        serde_json::from_str(api.get(&pod)["metadata"]["annotations"][ANNOTATION_PROBE_PART].as_str().unwrap())
            .unwrap();
    let report = fixtures::probe_report(&skill, &part.subject, &[("refund", "Refunds an order")]);
    let status = crate::report::probe::record(&skill, &report, Time(Timestamp::now())).unwrap();
    api.change(SKILL, |skill| skill["status"]["tools"] = serde_json::to_value(status.tools).unwrap());
    reconcile_once(&api).await;
    assert_eq!(writes(&api), [format!("delete {pod}"), format!("status {SKILL}")]);
    assert!(
        ["McpVerified", "ToolsPinned", "Ready"].iter().all(|kind| is_true(&conditions(&api), kind.parse().unwrap()))
    );
    reconcile_once(&api).await;
    assert_eq!(writes(&api).iter().filter(|write| !write.starts_with("delete")).count(), 0);
}

#[tokio::test]
async fn a_server_outside_of_the_cluster_is_probed_with_its_secrets() {
    let api = FakeApi::default();
    put(&api, &fixtures::with_uri());
    reconcile_once(&api).await;
    let probe = writes(&api).into_iter().find(|write| write.starts_with("create ") && write.contains("/pods/"));
    let pod = api.get(probe.unwrap().strip_prefix("create ").unwrap());
    let volumes = pod["spec"]["volumes"].as_array().unwrap();
    let secrets: Vec<&Value> = volumes.iter().map(|volume| &volume["secret"]["secretName"]).collect();
    let secrets: Vec<&str> = secrets.into_iter().filter_map(Value::as_str).collect();
    assert_eq!(secrets, ["tools"]);
    let part: ProbePart =
        serde_json::from_str(pod["metadata"]["annotations"][ANNOTATION_PROBE_PART].as_str().unwrap()).unwrap();
    assert_eq!(part.external_mcp.unwrap().headers[0].file.path, "/etc/bloomery/secrets/tools/token");
    assert_eq!(reason(&api, ConditionType::McpVerified), "Verifying");
    assert_eq!(reason(&api, ConditionType::ToolsPinned), "Verifying");
}

#[tokio::test]
async fn a_skill_that_loses_its_server_loses_its_tools_and_its_probe() {
    let (api, pod) = probing().await;
    api.change(SKILL, |skill| skill["spec"]["mcpServer"] = Value::Null);
    reconcile_once(&api).await;
    assert!(writes(&api).contains(&format!("delete {pod}")));
    assert_eq!(find(&conditions(&api), ConditionType::McpVerified), None);
    assert_eq!(reason(&api, ConditionType::Ready), "Ready");
}

#[tokio::test]
async fn a_refused_deletion_of_a_probe_keeps_no_skill_from_being_ready() {
    let (api, _) = probing().await;
    api.change(SKILL, |skill| skill["spec"]["mcpServer"] = Value::Null);
    api.refuse_deletes();
    let action = reconcile_once(&api).await;
    assert_eq!(
        (reason(&api, ConditionType::Ready).as_str(), action),
        ("Ready", Action::requeue(Duration::from_mins(1)))
    );
}

#[tokio::test]
async fn the_pod_of_another_making_is_not_the_probe_of_the_skill() {
    let (api, pod) = probing().await;
    api.change(&pod, |pod| {
        pod["metadata"]["annotations"]["bloomery.dev/seal"] = json!("AAAA");
        pod["status"] = json!({"phase": "Failed"});
    });
    reconcile_once(&api).await;
    assert_eq!(reason(&api, ConditionType::McpVerified), "Verifying");
    assert!(!writes(&api).iter().any(|write| write.starts_with("delete")));
}

mod named_skills;
mod network;
mod writes;
