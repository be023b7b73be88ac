use super::super::apply::{AppliedMcp, AppliedNetwork};
use super::super::{fixtures, validate};
use super::*;
use crate::apply::ApplyResult;
use crate::caches::Guarded;
use bloomery_crds::conditions::{find, is_true};
use bloomery_crds::lists::ConfigMaps;
use bloomery_crds::v1alpha1::{Model, RevisionRef, SecretKeyRef};
use k8s_openapi::jiff::Timestamp;
use rstest::rstest;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;

fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

fn at(second: i64) -> Time {
    Time(Timestamp::from_second(second).unwrap())
}

fn applied(mcp: AppliedMcp) -> AppliedSkill {
    AppliedSkill {
        memory_claim: ApplyResult::Unchanged,
        revision: ApplyResult::Unchanged,
        revision_ref: RevisionRef { name: "orders-12345678".into(), digest: bloomery_crds::Digest::of_bytes(b"") },
        worker_account: ApplyResult::Unchanged,
        mcp,
        network: AppliedNetwork::default(),
    }
}

fn managed_mcp() -> AppliedMcp {
    AppliedMcp::Managed {
        account: ApplyResult::Unchanged,
        deployment: Box::new(ApplyResult::Unchanged),
        service: Box::new(ApplyResult::Unchanged),
        budget: Box::new(ApplyResult::Unchanged),
    }
}

fn external_mcp() -> AppliedMcp {
    AppliedMcp::External(object(json!({"name": "shared-orders", "port": 8090})))
}

fn with_bound_memory() -> FetchedSkill {
    FetchedSkill { memory_claim: Some(claim(&json!({}), &json!({"phase": "Bound"}))), ..with_model() }
}

/// The cached state with the Model of the Skill.
fn with_model() -> FetchedSkill {
    let models = [("default".to_owned(), Arc::new(Guarded(Ok(fixtures::model("default")))))];
    FetchedSkill { models: models.into(), has_endpoint: true, ..FetchedSkill::default() }
}

fn claim<K: DeserializeOwned>(metadata: &Value, status: &Value) -> Arc<K> {
    Arc::new(object(json!({"metadata": metadata, "spec": {"storageClassName": "fast"}, "status": status})))
}

/// The cached state with a Deployment in this status, and these pods.
fn with_deployment(status: &Value, pods: &[Value]) -> FetchedSkill {
    let deployment = json!({
        "metadata": {"name": "orders-mcp", "generation": 3},
        "spec": {"replicas": 1, "selector": {}, "template": {}},
        "status": status,
    });
    FetchedSkill {
        mcp_deployment: Some(Arc::new(object(deployment))),
        mcp_pods: pods.iter().map(|pod| Arc::new(object(pod.clone()))).collect(),
        ..with_bound_memory()
    }
}

fn pod(container: &Value) -> Value {
    let mut status =
        json!({"name": "mcp", "image": "localhost/orders:3", "imageID": "", "ready": false, "restartCount": 0});
    status.as_object_mut().unwrap().extend(container.as_object().unwrap().clone());
    json!({"metadata": {"name": "orders-mcp-1"}, "status": {"containerStatuses": [status]}})
}

/// Describes the health of the Skill and one condition: `<health> <status>/<reason>: <message>`.
fn summary(applied: AppliedSkill, fetched: &FetchedSkill, kind: ConditionType) -> String {
    let skill = fixtures::with_container();
    let status = compute(&skill, &Ok(applied), fetched, &ProbeState::NoServer, &at(1));
    let condition = find(&status.conditions, kind).unwrap();
    let health = match (
        is_true(&status.conditions, ConditionType::Reconciling),
        is_true(&status.conditions, ConditionType::Stalled),
    ) {
        (true, false) => "Reconciling",
        (false, true) => "Stalled",
        (false, false) if is_true(&status.conditions, ConditionType::Ready) => "Ready",
        _ => "?",
    };
    format!("{health} {}/{}: {}", condition.status, condition.reason, condition.message)
}

const ROLLED_OUT: &str = r#"{"observedGeneration": 3, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}"#;

#[test]
fn a_skill_with_all_objects_is_ready_and_stays_unchanged() {
    let fetched = with_deployment(&serde_json::from_str(ROLLED_OUT).unwrap(), &[]);
    let mut skill = fixtures::with_container();
    let status = compute(&skill, &Ok(applied(managed_mcp())), &fetched, &ProbeState::NoServer, &at(1));
    assert!(is_true(&status.conditions, ConditionType::Ready));
    assert_eq!(status.observed_generation, Some(4));
    assert_eq!(status.revision.as_ref().unwrap().name, "orders-12345678");
    let kinds: Vec<&str> = status.conditions.iter().map(|condition| condition.type_.as_str()).collect();
    assert_eq!(kinds, ["Accepted", "McpAvailable", "MemoryReady", "ModelsReady", "NetworkReady", "Ready"]);
    skill.status = Some(status.clone());
    assert_eq!(compute(&skill, &Ok(applied(managed_mcp())), &fetched, &ProbeState::NoServer, &at(9)), status);
}

#[test]
fn a_secret_that_reaches_no_tool_is_named_and_does_not_block_the_skill() {
    let skill = fixtures::complete();
    let status = compute(&skill, &Ok(applied(AppliedMcp::Absent)), &with_bound_memory(), &ProbeState::NoServer, &at(1));
    let accepted = find(&status.conditions, ConditionType::Accepted).unwrap();
    let remark =
        "; ledger reaches nothing, because only an MCP server of scope Job gets a connection_string: name it in";
    assert!(accepted.message.contains(remark), "{}", accepted.message);
    assert_eq!(accepted.status, "True");
    assert!(!is_true(&status.conditions, ConditionType::Stalled));
}

#[test]
fn a_skill_without_a_config_map_of_its_lists_waits_and_keeps_its_last_revision() {
    let mut skill = fixtures::with_list();
    skill.status =
        Some(compute(&skill, &Ok(applied(AppliedMcp::Absent)), &with_bound_memory(), &ProbeState::NoServer, &at(1)));
    let missing = validate::validate(&skill).and_then(|valid| validate::resolve_lists(valid, &ConfigMaps::new()));
    let status = compute(&skill, &missing.map(|_| unreachable!()), &with_bound_memory(), &ProbeState::NoServer, &at(2));
    assert_eq!(status.revision.as_ref().unwrap().name, "orders-12345678");
    let accepted = find(&status.conditions, ConditionType::Accepted).unwrap();
    assert_eq!((accepted.status.as_str(), accepted.reason.as_str()), ("False", "ListNotFound"));
    assert!(is_true(&status.conditions, ConditionType::Reconciling));
    assert!(!is_true(&status.conditions, ConditionType::Ready));
}

#[test]
fn an_invalid_skill_keeps_its_last_revision() {
    let mut skill = fixtures::with_container();
    skill.status =
        Some(compute(&skill, &Ok(applied(AppliedMcp::Absent)), &with_bound_memory(), &ProbeState::NoServer, &at(1)));
    skill.spec.role.as_mut().unwrap().persona = Some("{{".into());
    let status = compute(
        &skill,
        &validate::validate(&skill).map(|_| unreachable!()),
        &with_bound_memory(),
        &ProbeState::NoServer,
        &at(2),
    );
    assert_eq!(status.revision.as_ref().unwrap().name, "orders-12345678");
    let accepted = find(&status.conditions, ConditionType::Accepted).unwrap();
    assert_eq!((accepted.status.as_str(), accepted.reason.as_str()), ("False", "Invalid"));
    assert!(accepted.message.starts_with("spec.role.persona (line 1, column 1): "), "{}", accepted.message);
    assert!(is_true(&status.conditions, ConditionType::Stalled));
}

#[rstest]
#[case(json!({}), json!({"phase": "Bound"}), "Ready True/Bound: ")]
#[case(json!({}), json!({"phase": "Pending"}), "Ready True/WaitingForFirstConsumer: ")]
#[case(json!({}), json!({}), "Ready True/WaitingForFirstConsumer: ")]
#[case(json!({"annotations": {"volume.kubernetes.io/storage-provisioner": "x"}}), json!({"phase": "Pending"}), "Ready Unknown/ClaimPending: class fast is provisioning")]
#[case(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}), json!({"phase": "Bound"}), "Reconciling False/ClaimPending: ")]
#[case(json!({}), json!({"phase": "Lost"}), "Stalled False/ClaimLost: ")]
fn the_state_of_the_memory_claim_is_reported(#[case] metadata: Value, #[case] status: Value, #[case] expected: &str) {
    let fetched = FetchedSkill { memory_claim: Some(claim(&metadata, &status)), ..with_model() };
    let summary = summary(applied(AppliedMcp::Absent), &fetched, ConditionType::MemoryReady);
    assert!(summary.starts_with(expected), "{summary}");
}

#[test]
fn a_claim_without_a_storage_class_is_reported_and_does_not_block_the_skill() {
    let claim = object(json!({"metadata": {}, "spec": {}, "status": {"phase": "Pending"}}));
    let fetched = FetchedSkill { memory_claim: Some(Arc::new(claim)), ..with_model() };
    let summary = summary(applied(AppliedMcp::Absent), &fetched, ConditionType::MemoryReady);
    assert!(summary.starts_with("Ready Unknown/ClaimPending: bloomery-memory has no storage class"), "{summary}");
}

#[test]
fn a_claim_for_one_pod_stalls_the_skill_with_a_remedy() {
    let claim = json!({"metadata": {}, "spec": {"accessModes": ["ReadWriteOncePod"]}, "status": {"phase": "Bound"}});
    let fetched = FetchedSkill { memory_claim: Some(Arc::new(object(claim))), ..with_model() };
    let summary = summary(applied(AppliedMcp::Absent), &fetched, ConditionType::MemoryReady);
    assert!(
        summary.starts_with("Stalled False/SinglePodClaim: ") && summary.contains("as ReadWriteOnce or"),
        "{summary}"
    );
}

#[test]
fn a_claim_that_is_not_bound_although_a_pod_waits_for_it_is_named_with_a_remedy() {
    let pending = claim(&json!({}), &json!({"phase": "Pending"}));
    let unbound_pod = Some("refund-1-01234".to_owned());
    let fetched = FetchedSkill { memory_claim: Some(pending), unbound_pod, ..with_model() };
    let summary = summary(applied(AppliedMcp::Absent), &fetched, ConditionType::MemoryReady);
    let expected =
        "Ready Unknown/ClaimPending: bloomery-memory of the class fast is not bound, and the pod refund-1-01234";
    assert!(summary.starts_with(expected) && summary.contains("kubectl describe pvc bloomery-memory"), "{summary}");
}

#[test]
fn a_memory_that_a_worker_could_not_write_blocks_the_skill_with_the_workers_message() {
    let fetched = FetchedSkill { memory_fault: Some("NotWritable: ask the admin".into()), ..with_bound_memory() };
    let summary = summary(applied(AppliedMcp::Absent), &fetched, ConditionType::MemoryReady);
    assert_eq!(summary, "Reconciling False/NotWritable: NotWritable: ask the admin");
}

#[test]
fn the_measured_size_of_the_memory_stays() {
    let mut skill = fixtures::without_server();
    let memory = json!({"bytes": 7, "measured": "2026-01-01T00:00:00Z"});
    skill.status = Some(object(json!({"memory": memory})));
    let status = compute(&skill, &Ok(applied(AppliedMcp::Absent)), &with_bound_memory(), &ProbeState::NoServer, &at(1));
    assert_eq!(status.memory.unwrap().bytes, 7);
}

#[rstest]
#[case(json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "availableReplicas": 1}), "Reconciling False/Progressing: ")]
#[case(json!({"observedGeneration": 3, "replicas": 2, "updatedReplicas": 1, "availableReplicas": 1}), "Reconciling False/Progressing: ")]
#[case(json!({"observedGeneration": 3, "replicas": 1, "updatedReplicas": 1}), "Reconciling False/Progressing: ")]
#[case(serde_json::from_str(ROLLED_OUT).unwrap(), "Ready True/Available: ")]
#[case(
    json!({"observedGeneration": 3, "replicas": 1, "conditions": [{"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}]}),
    "Stalled False/McpUnavailable: the startup probe failed: the MCP server in pod (none) accepts no connections on port 8070"
)]
#[case(
    json!({"observedGeneration": 3, "conditions": [{"type": "ReplicaFailure", "status": "True", "message": "exceeded quota: pods"}]}),
    "Stalled False/McpUnavailable: the namespace refuses the MCP server's pod: exceeded quota: pods"
)]
fn the_state_of_the_deployment_is_reported(#[case] status: Value, #[case] expected: &str) {
    let summary = summary(applied(managed_mcp()), &with_deployment(&status, &[]), ConditionType::McpAvailable);
    assert!(summary.starts_with(expected), "{summary}");
}

#[rstest]
#[case::starting(json!({"state": {"waiting": {"reason": "ContainerCreating"}}}), "Reconciling False/Progressing: ")]
#[case::image(
    json!({"state": {"waiting": {"reason": "ErrImagePull", "message": "not found"}}}),
    "Stalled False/McpUnavailable: the image localhost/orders:3 of the MCP server cannot be pulled"
)]
#[case::root(
    json!({"state": {"waiting": {"reason": "CreateContainerConfigError", "message": "image will run as root"}}}),
    "Stalled False/McpUnavailable: pod orders-mcp-1 of the MCP server cannot start (CreateContainerConfigError): image will run as root"
)]
#[case::crash(
    json!({"state": {"running": {}}, "lastState": {"terminated": {"exitCode": 2, "reason": "Error"}}}),
    "Stalled False/McpUnavailable: the MCP server exited with code 2 and is restarted"
)]
#[case::not_listening(
    json!({"started": false, "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 143, "reason": "Error"}}}),
    "Stalled False/McpUnavailable: the startup probe failed: the MCP server in pod orders-mcp-1 accepts no connections on port 8070"
)]
#[case::not_listening_and_ended_by_sigterm(
    json!({"started": false, "state": {"running": {}}, "lastState": {"terminated": {
        "exitCode": 0, "reason": "Completed", "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:02:01Z",
    }}}),
    "Stalled False/McpUnavailable: the startup probe failed: the MCP server in pod orders-mcp-1 accepts no connections on port 8070"
)]
#[case::ended_by_itself(
    json!({"started": false, "state": {"running": {}}, "lastState": {"terminated": {
        "exitCode": 0, "reason": "Completed", "startedAt": "2026-01-01T00:00:00Z", "finishedAt": "2026-01-01T00:00:03Z",
    }}}),
    "Stalled False/McpUnavailable: the MCP server exited with code 0 and is restarted"
)]
#[case::probed(
    json!({"started": false, "state": {"running": {}}}),
    "Reconciling False/Progressing: the MCP server is starting: its startup probe cannot connect to port 8070 yet"
)]
#[case::not_root(
    json!({"state": {"waiting": {"reason": "CreateContainerConfigError", "message": "container has runAsNonRoot and image will run as root"}}}),
    "Stalled False/McpUnavailable: pod orders-mcp-1 of the MCP server cannot start (CreateContainerConfigError): container has runAsNonRoot and image will run as root: build the image with a numeric USER"
)]
#[case::memory(
    json!({"started": false, "state": {"running": {}}, "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}),
    "Stalled False/McpUnavailable: the MCP server exited with code 137 (OOMKilled)"
)]
fn the_problem_of_the_pod_is_reported(#[case] container: Value, #[case] expected: &str) {
    let fetched = with_deployment(&json!({"observedGeneration": 3, "replicas": 1}), &[pod(&container)]);
    let summary = summary(applied(managed_mcp()), &fetched, ConditionType::McpAvailable);
    assert!(summary.starts_with(expected), "{summary}");
}

#[test]
fn a_server_that_closes_its_port_after_its_start_fails_the_readiness_probe() {
    let overdue = [json!({"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"})];
    let status = json!({"observedGeneration": 3, "replicas": 1, "conditions": overdue});
    let fetched = with_deployment(&status, &[pod(&json!({"started": true, "state": {"running": {}}}))]);
    let summary = summary(applied(managed_mcp()), &fetched, ConditionType::McpAvailable);
    assert!(summary.starts_with("Stalled False/McpUnavailable: the readiness probe failed: "), "{summary}");
}

#[rstest]
#[case(json!({"waiting": {"reason": "ErrImagePull", "message": "a"}}), json!({"waiting": {"reason": "ImagePullBackOff", "message": "b"}}))]
#[case(json!({"terminated": {"exitCode": 2, "reason": "Error"}}), json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}))]
fn a_failure_and_the_pause_after_it_have_the_same_message(#[case] failure: Value, #[case] pause: Value) {
    let ended = json!({"terminated": {"exitCode": 2, "reason": "Error"}});
    let last = if failure["terminated"].is_null() { json!({}) } else { ended };
    let summary_of = |state: &Value| {
        let seen = pod(&json!({"state": state, "lastState": last}));
        summary(
            applied(managed_mcp()),
            &with_deployment(&json!({"observedGeneration": 3}), &[seen]),
            ConditionType::McpAvailable,
        )
    };
    assert_eq!(summary_of(&failure), summary_of(&pause));
}

#[rstest]
#[case(None, "Reconciling False/ServiceNotFound: the Service shared-orders does not exist")]
#[case(Some(json!({"ports": [{"port": 8090}]})), "Ready True/Available: ")]
#[case(Some(json!({"ports": [{"port": 80}, {"port": 8090, "protocol": "UDP"}]})), "Stalled False/PortNotFound: Service shared-orders has no TCP port 8090, it has 80:")]
#[case(Some(json!({})), "Stalled False/PortNotFound: Service shared-orders has no TCP port 8090, it has none:")]
#[case(Some(json!({"type": "ExternalName", "ports": [{"port": 8090}]})), "Stalled False/Invalid: ")]
fn the_state_of_a_named_service_is_reported(#[case] spec: Option<Value>, #[case] expected: &str) {
    let service = spec.map(|spec| Arc::new(object(json!({"metadata": {"name": "shared-orders"}, "spec": spec}))));
    let summary = summary(
        applied(external_mcp()),
        &FetchedSkill { named_service: service, ..with_bound_memory() },
        ConditionType::McpAvailable,
    );
    assert!(summary.starts_with(expected), "{summary}");
}

#[test]
fn objects_of_another_owner_and_refused_objects_are_reported() {
    let mut taken = applied(AppliedMcp::Absent);
    taken.worker_account = ApplyResult::NameTaken;
    let taken = summary(taken, &with_bound_memory(), ConditionType::Accepted);
    assert!(
        taken.starts_with("Stalled False/NameTaken: the ServiceAccount orders-worker has another owner"),
        "{taken}"
    );
    let mut refused = applied(AppliedMcp::Absent);
    refused.memory_claim = ApplyResult::Refused("exceeded quota".into());
    let refused = summary(refused, &with_bound_memory(), ConditionType::MemoryReady);
    assert!(refused.starts_with("Stalled False/Refused: "), "{refused}");
}

#[test]
fn the_newer_of_two_pods_counts() {
    let pod_at = |minute: u32, container: Value| {
        let mut pod = pod(&container);
        pod["metadata"]["creationTimestamp"] = json!(format!("2026-01-01T00:{minute:02}:00Z"));
        pod
    };
    let broken = json!({"state": {"waiting": {"reason": "ErrImagePull"}}});
    let starting = json!({"state": {"waiting": {"reason": "ContainerCreating"}}});
    let pods = [pod_at(1, broken), pod_at(2, starting)];
    let fetched = with_deployment(&json!({"observedGeneration": 3, "replicas": 2, "updatedReplicas": 1}), &pods);
    let summary = summary(applied(managed_mcp()), &fetched, ConditionType::McpAvailable);
    assert!(summary.starts_with("Reconciling False/Progressing: "), "{summary}");
}

fn models_summary(fetched: &FetchedSkill) -> String {
    summary(applied(AppliedMcp::Absent), fetched, ConditionType::ModelsReady)
}

#[test]
fn a_skill_is_ready_only_with_its_models() {
    let with = |change: fn(&mut Model)| {
        let mut model = fixtures::model("default");
        change(&mut model);
        let models = [("default".to_owned(), Arc::new(Guarded(Ok(model))))].into();
        models_summary(&FetchedSkill { models, ..with_bound_memory() })
    };
    assert_eq!(with(|_| ()), "Ready True/Ready: the Model default is ready");
    let missing = models_summary(&FetchedSkill { models: [].into(), ..with_bound_memory() });
    assert!(missing.starts_with("Reconciling False/ModelNotFound: the Model default does not exist"), "{missing}");
    let edited = with(|model| model.metadata.generation = Some(3));
    assert!(edited.starts_with("Reconciling False/ModelNotReady: the Model default is not ready"), "{edited}");
    let without_fallback = with(|model| model.spec.fallback = vec!["fast".into()]);
    assert!(without_fallback.starts_with("Reconciling False/ModelNotReady: "), "{without_fallback}");
    assert!(without_fallback.contains("the Model fast, which does not exist"), "{without_fallback}");
}

#[rstest]
#[case::key_of_the_model(
    "llm",
    "token",
    "Reconciling False/SecretMissing: a Job waits for the key token of the Secret llm"
)]
#[case::another_secret("llm-2", "token", "Ready True/Ready: ")]
#[case::another_key("llm", "token2", "Ready True/Ready: ")]
fn a_skill_is_not_ready_while_a_job_waits_for_the_key_of_its_model(
    #[case] secret: &str,
    #[case] key: &str,
    #[case] expected: &str,
) {
    let wait = SecretKeyRef { name: secret.into(), key: key.into() };
    let summary = models_summary(&FetchedSkill { key_waits: vec![wait], ..with_bound_memory() });
    assert!(summary.starts_with(expected), "{summary}");
}

#[test]
fn a_service_without_a_ready_endpoint_is_not_available() {
    let rolled_out = with_deployment(&serde_json::from_str(ROLLED_OUT).unwrap(), &[]);
    let managed = FetchedSkill { has_endpoint: false, ..rolled_out };
    let found = summary(applied(managed_mcp()), &managed, ConditionType::McpAvailable);
    assert!(
        found.starts_with("Reconciling False/NoEndpoints: the Service orders-mcp has no ready endpoint"),
        "{found}"
    );
    let service = object(json!({"metadata": {"name": "shared-orders"}, "spec": {"ports": [{"port": 8090}]}}));
    let named = FetchedSkill { named_service: Some(Arc::new(service)), has_endpoint: false, ..with_bound_memory() };
    let found = summary(applied(external_mcp()), &named, ConditionType::McpAvailable);
    assert!(found.starts_with("Reconciling False/NoEndpoints: the Service shared-orders has no ready"), "{found}");
}

#[rstest]
#[case::no_tool(json!([]), "the Skill has no MCP server, and needs none")]
#[case::a_core_tool(json!([{"name": "ask_user"}]), "the Skill has no MCP server, and needs none")]
#[case::tools_of_a_server(
    json!([{"name": "track_order"}, {"name": "ask_user"}, {"name": "refund_*"}]),
    "the Skill has no MCP server, and its Jobs run without these tools that it names: track_order, refund_*"
)]
#[case::a_misspelt_tool(
    json!([{"name": "ask_usr"}]),
    "the Skill has no MCP server, and its Jobs run without these tools that it names: ask_usr (did you mean \"ask_user\"?)"
)]
fn a_skill_without_a_server_names_the_tools_that_its_jobs_lack(#[case] tools: Value, #[case] expected: &str) {
    let mut skill = fixtures::without_server();
    skill.spec.tools = object(tools);
    let applied = Ok(applied(AppliedMcp::Absent));
    let status = compute(&skill, &applied, &with_bound_memory(), &ProbeState::NoServer, &at(1));
    let condition = find(&status.conditions, ConditionType::McpAvailable).unwrap();
    assert_eq!((condition.reason.as_str(), condition.message.as_str()), ("NoMcpServer", expected));
    assert!(is_true(&status.conditions, ConditionType::Ready));
}

#[test]
fn a_reverted_object_is_named_and_does_not_block_the_skill() {
    let fetched = with_deployment(&serde_json::from_str(ROLLED_OUT).unwrap(), &[]);
    let mcp = AppliedMcp::Managed {
        account: ApplyResult::Unchanged,
        deployment: Box::new(ApplyResult::Reverted(vec!["containers[mcp].image".into()])),
        service: Box::new(ApplyResult::Unchanged),
        budget: Box::new(ApplyResult::Unchanged),
    };
    let found = summary(applied(mcp), &fetched, ConditionType::McpAsWritten);
    assert!(
        found.starts_with("Ready False/Reverted: the Deployment orders-mcp differs at containers[mcp].image."),
        "{found}"
    );
}

/// Describes a condition of a verified Skill with this status, as [`summary`] does.
fn tools_summary(tools: &Value, probe: &ProbeState, kind: ConditionType) -> String {
    let fetched = with_deployment(&serde_json::from_str(ROLLED_OUT).unwrap(), &[]);
    let mut skill = fixtures::with_container();
    skill.status = Some(compute(&skill, &Ok(applied(managed_mcp())), &fetched, &ProbeState::Pending, &at(1)));
    if !tools.is_null() {
        let server = skill.spec.mcp_server.as_ref().unwrap();
        let digest = |text: &[u8]| bloomery_crds::Digest::of_bytes(text);
        let mut whole = json!({
            "server": bloomery_crds::probe::server_digest(server), "digest": digest(b"pinned"), "pins": {},
            "found": {
                "key": digest(b"key"), "rules": bloomery_crds::probe::rules_digest(&skill.spec),
                "at": "2026-01-01T00:00:00Z", "digest": digest(b"found"), "count": 2,
            },
        });
        for (pointer, value) in tools.as_object().unwrap() {
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            whole.pointer_mut(parent).unwrap()[field] = value.clone();
        }
        skill.status.as_mut().unwrap().tools = Some(object(whole));
    }
    let status = compute(&skill, &Ok(applied(managed_mcp())), &fetched, probe, &at(2));
    let condition = find(&status.conditions, kind).unwrap();
    let ready = find(&status.conditions, ConditionType::Ready).unwrap();
    format!("{} {}/{}: {}", ready.reason, condition.status, condition.reason, condition.message)
}

#[rstest]
#[case::first(json!(null), ProbeState::Pending, "Verifying False/Verifying: the tools of the MCP server are not verified yet")]
#[case::failed(
    json!(null), ProbeState::Failed("it does not answer".into()),
    "ProbeFailed False/ProbeFailed: the tools of the MCP server cannot be verified: it does not answer"
)]
#[case::verified(json!({}), ProbeState::Verified, "Ready True/Verified: the MCP server lists 2 tools, and the rules")]
#[case::new_image(json!({}), ProbeState::Pending, "Ready True/Verified: the MCP server lists 2 tools")]
#[case::other_rules(json!({"/found/rules": "sha256:0"}), ProbeState::Pending, "Verifying False/Verifying: ")]
#[case::other_server(json!({"/server": "sha256:0"}), ProbeState::Pending, "Verifying False/Verifying: ")]
#[case::rule(
    json!({"/found/ruleErrors": ["spec.policy.approvals[0].toolId: no tool matches \"refnd\" (did you mean \"refund\"?)"], "/found/moreRuleErrors": 2}),
    ProbeState::Verified,
    "RulesInvalid False/RulesInvalid: spec.policy.approvals[0].toolId: no tool matches \"refnd\" (did you mean \"refund\"?). And 2 more."
)]
fn the_verification_of_the_server_is_reported(#[case] tools: Value, #[case] probe: ProbeState, #[case] expected: &str) {
    let summary = tools_summary(&tools, &probe, ConditionType::McpVerified);
    assert!(summary.starts_with(expected), "{summary}");
}

#[rstest]
#[case::pinned(json!({}), "Ready True/Pinned: the tools are pinned with the digest sha256:")]
#[case::changed(
    json!({"/found/changes": ["refund: its description changed", "pay: is new"]}),
    "ToolsChanged False/ToolsChanged: refund: its description changed. pay: is new. Jobs are denied these tools. To accept them, set spec.mcpServer.toolsDigest to sha256:"
)]
#[case::not_accepted(
    json!({"/digest": null, "/pins": null}),
    "ToolsChanged False/ToolsChanged: the MCP server offers tools with the digest sha256:"
)]
fn the_pins_of_the_tools_are_reported(#[case] tools: Value, #[case] expected: &str) {
    let summary = tools_summary(&tools, &ProbeState::Verified, ConditionType::ToolsPinned);
    assert!(summary.starts_with(expected), "{summary}");
}

#[test]
fn a_repeated_probe_keeps_the_message_of_the_failure() {
    let fetched = with_deployment(&serde_json::from_str(ROLLED_OUT).unwrap(), &[]);
    let mut skill = fixtures::with_container();
    let failed = ProbeState::Failed("it does not answer".into());
    let before = compute(&skill, &Ok(applied(managed_mcp())), &fetched, &failed, &at(1));
    skill.status = Some(before.clone());
    assert_eq!(compute(&skill, &Ok(applied(managed_mcp())), &fetched, &ProbeState::Repeated, &at(9)), before);
}
