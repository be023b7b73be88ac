//! The network policies of a Skill.

use super::super::skills_of_pod;
use super::*;
use crate::job::fixtures::{pod, sealed};
use bloomery_crds::names;
use k8s_openapi::api::core::v1::Pod;

const POLICIES: &str = "/apis/networking.k8s.io/v1/namespaces/acme/networkpolicies";

/// The policies of a Skill with an MCP server in a container.
const ALL: [&str; 3] = ["bloomery-isolation", "orders-mcp", "orders-worker"];

fn path(name: &str) -> String {
    format!("{POLICIES}/{name}")
}

/// Reconciles the Skill once, with an operator that has just started and writes network policies.
async fn reconcile_isolated(api: &FakeApi) {
    let skill = serde_json::from_value(api.get(SKILL)).unwrap();
    Box::pin(reconcile(skill, isolating_operator(api).await, Arc::default())).await.unwrap();
}

/// A Skill whose MCP server connects to these hosts.
fn connecting_to(egress: Value) -> Skill {
    let mut skill = fixtures::with_container();
    skill.spec.mcp_server.as_mut().unwrap().egress = serde_json::from_value(egress).unwrap();
    skill
}

fn service(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": "acme", "name": name, "uid": name}, "spec": spec})
}

/// The path of the pod of [`connected_worker`].
const POD: &str = "/api/v1/namespaces/acme/pods/refund-1-01234";

/// A worker of the Skill whose attempt began with connections to these addresses.
fn connected_worker(phase: &str, connects_to: &str) -> Pod {
    let mut worker = pod(1, phase);
    let metadata = &mut worker.metadata;
    metadata.labels.get_or_insert_default().insert(names::LABEL_SKILL.to_owned(), "orders".to_owned());
    let annotation = (names::ANNOTATION_CONNECTS_TO.to_owned(), connects_to.to_owned());
    metadata.annotations = Some([annotation].into());
    sealed(worker)
}

/// Stores a pod, and reconciles the Skill. Returns the writes of network policies.
async fn policy_writes_with(api: &FakeApi, worker: &Pod) -> Vec<String> {
    api.put(POD, serde_json::to_value(worker).unwrap());
    writes(api);
    reconcile_isolated(api).await;
    policy_writes(api)
}

/// Returns whether workers may connect to this port at public addresses.
fn is_open(api: &FakeApi, port: u16) -> bool {
    let rules = api.get(&path("orders-worker"))["spec"]["egress"].as_array().unwrap().clone();
    rules.iter().any(|rule| rule["ports"][0]["port"] == port && rule["to"][0].get("ipBlock").is_some())
}

/// A change that another writer makes to a policy.
type Change = fn(&mut Value);

/// The writes of network policies since the writes were last read.
fn policy_writes(api: &FakeApi) -> Vec<String> {
    writes(api).into_iter().filter(|write| write.contains(POLICIES)).collect()
}

#[tokio::test]
async fn a_skill_has_three_policies_that_are_restored_and_cost_nothing_otherwise() {
    let api = FakeApi::default();
    put(&api, &fixtures::with_container());
    reconcile_isolated(&api).await;
    assert_eq!(policy_writes(&api), ALL.map(|name| format!("apply {}", path(name))));
    assert_eq!(reason(&api, ConditionType::NetworkReady), "Isolated");
    reconcile_isolated(&api).await;
    assert_eq!(writes(&api), [""; 0]);
    let opened: [(&str, Change); 4] = [
        ("bloomery-isolation", |policy| policy["spec"]["podSelector"]["matchLabels"]["team"] = json!("none")),
        ("bloomery-isolation", |policy| policy["spec"]["egress"] = json!([{}])),
        ("orders-mcp", |policy| policy["spec"]["ingress"][0]["from"][0]["namespaceSelector"] = json!({})),
        ("orders-worker", |policy| policy["spec"]["policyTypes"] = json!(["Ingress"])),
    ];
    for (name, open) in opened {
        let before = api.get(&path(name))["spec"].clone();
        api.change(&path(name), open);
        reconcile_isolated(&api).await;
        assert_eq!(
            (policy_writes(&api), &api.get(&path(name))["spec"]),
            (vec![format!("apply {}", path(name))], &before)
        );
    }
}

#[tokio::test]
async fn running_jobs_keep_their_network_when_the_first_policies_are_written() {
    let api = FakeApi::default();
    put(&api, &fixtures::with_container());
    reconcile_isolated(&api).await;
    let mut policies = api.writes().into_iter().filter(|write| write.contains(POLICIES));
    assert_eq!(policies.next_back(), Some(format!("apply {}", path("bloomery-isolation"))));
}

#[tokio::test]
async fn the_jobs_of_an_invalid_skill_have_a_network() {
    let mut skill = fixtures::with_container();
    skill.spec.role.as_mut().unwrap().persona = Some("You are {{name}}".into());
    let api = FakeApi::default();
    put(&api, &skill);
    reconcile_isolated(&api).await;
    assert_eq!(policy_writes(&api), ALL.map(|name| format!("apply {}", path(name))));
    assert_eq!(reason(&api, ConditionType::Accepted), "Invalid");
    // The earlier spec named another Model.
    let earlier = connected_worker("Running", "other.example:8443");
    assert_eq!(policy_writes_with(&api, &earlier).await, [format!("apply {}", path("orders-worker"))]);
    assert!(is_open(&api, 8443));
    reconcile_once(&api).await;
    assert_eq!(policy_writes(&api), ALL.map(|name| format!("delete {}", path(name))));
}

#[tokio::test]
async fn a_running_worker_keeps_its_addresses_with_two_writes_for_a_change_of_the_model() {
    let api = FakeApi::default();
    put(&api, &fixtures::without_server());
    api.change(MODEL, |model| model["spec"]["baseUrl"] = json!("https://models.example:9443/v1"));
    reconcile_isolated(&api).await;
    let running = connected_worker("Running", "models.example:9443");
    assert_eq!(policy_writes_with(&api, &running).await, [""; 0], "a Job that starts costs no write of a policy");
    api.change(MODEL, |model| model["spec"]["baseUrl"] = json!("https://models.example:9444/v1"));
    assert_eq!(policy_writes_with(&api, &running).await, [format!("apply {}", path("orders-worker"))]);
    assert!(is_open(&api, 9443) && is_open(&api, 9444));
    let ended = connected_worker("Succeeded", "models.example:9443");
    assert_eq!(policy_writes_with(&api, &ended).await, [format!("apply {}", path("orders-worker"))]);
    assert!(!is_open(&api, 9443) && is_open(&api, 9444));
}

#[tokio::test]
async fn one_edit_that_changes_both_policies_of_a_skill_costs_three_writes() {
    let api = FakeApi::default();
    put(&api, &fixtures::with_container());
    reconcile_isolated(&api).await;
    let running = connected_worker("Running", "models.example:443");
    assert_eq!(policy_writes_with(&api, &running).await, [""; 0]);
    let mut other = fixtures::model("other");
    other.spec.base_url = "https://other.example:8443/v1".to_owned();
    api.put(&MODEL.replace("default", "other"), serde_json::to_value(other).unwrap());
    let mut edited = connecting_to(json!([{"host": "api.example.com"}]));
    edited.spec.engine = serde_json::from_value(json!({"model": "other"})).unwrap();
    put(&api, &edited);
    let both = ["orders-mcp", "orders-worker"].map(|name| format!("apply {}", path(name)));
    assert_eq!(policy_writes_with(&api, &running).await, both);
    assert!(is_open(&api, 443) && is_open(&api, 8443), "the worker keeps the address of the earlier Model");
    let ended = connected_worker("Succeeded", "models.example:443");
    assert_eq!(policy_writes_with(&api, &ended).await, [format!("apply {}", path("orders-worker"))]);
    assert!(!is_open(&api, 443) && is_open(&api, 8443));
}

#[tokio::test]
async fn an_annotation_of_a_pod_opens_nothing_that_the_tenant_may_not_have() {
    let api = FakeApi::default();
    put(&api, &fixtures::without_server());
    reconcile_isolated(&api).await;
    let forbidden = "169.254.169.254:9443 10.0.0.7:9443 kubernetes.default.svc:9443 model.rival.svc:9443 ledger:9443";
    assert_eq!(policy_writes_with(&api, &connected_worker("Running", forbidden)).await, [""; 0]);
    let mut unsealed = connected_worker("Running", "models.example:9443");
    unsealed.metadata.annotations.as_mut().unwrap().insert(names::ANNOTATION_SEAL.to_owned(), "AAAA".to_owned());
    assert_eq!(policy_writes_with(&api, &unsealed).await, [""; 0]);
    let mut of_another = connected_worker("Running", "models.example:9443");
    of_another.metadata.labels.as_mut().unwrap().insert(names::LABEL_SKILL.to_owned(), "another".to_owned());
    assert_eq!(policy_writes_with(&api, &of_another).await, [""; 0]);
    // The number of listed destinations is bounded.
    let many: Vec<String> = (0..1000).map(|nth| format!("models.example:{}", 10_000 + nth)).collect();
    policy_writes_with(&api, &connected_worker("Running", &many.join(" "))).await;
    let rules = api.get(&path("orders-worker"))["spec"]["egress"].as_array().unwrap().len();
    assert!((100..200).contains(&rules), "{rules}");
}

#[tokio::test]
async fn a_worker_wakes_its_skill_only_if_it_connects_to_what_the_skill_no_longer_names() {
    let api = FakeApi::default();
    put(&api, &fixtures::without_server());
    let context = api.operator().await;
    let woken = |pod: &Pod| skills_of_pod(context.caches.skills.store(), context.caches.models.store(), pod).len();
    for phase in ["Pending", "Running", "Succeeded"] {
        assert_eq!(woken(&connected_worker(phase, "models.example:443")), 0, "{phase}");
        assert_eq!(woken(&connected_worker(phase, "earlier.example:443 models.example:443")), 1, "{phase}");
    }
    assert_eq!(woken(&pod(1, "Running")), 0);
}

#[tokio::test]
async fn an_mcp_server_connects_to_what_is_listed_and_allowed() {
    let api = FakeApi::default();
    let hosts = [("api.example.com", 443), ("ledger", 80), ("10.0.0.7", 443), ("kubernetes.default.svc", 443)];
    put(&api, &connecting_to(hosts.iter().map(|(host, port)| json!({"host": host, "port": port})).collect()));
    reconcile_isolated(&api).await;
    let network = find(&conditions(&api), ConditionType::NetworkReady).unwrap().clone();
    assert_eq!(network.reason, "EgressNotAllowed");
    for fault in
        ["spec.mcpServer.egress[2]: 10.0.0.7 is", "spec.mcpServer.egress[3]: kubernetes.default.svc is the API server"]
    {
        assert!(network.message.contains(fault), "{}", network.message);
    }
    assert_eq!(reason(&api, ConditionType::Stalled), "EgressNotAllowed");
    let rules = |api: &FakeApi| api.get(&path("orders-mcp"))["spec"]["egress"].as_array().unwrap().len();
    assert_eq!(rules(&api), 2, "DNS and the public name");
    let spec = json!({"selector": {"app": "ledger"}, "ports": [{"port": 80, "targetPort": 8080}]});
    api.put("/api/v1/namespaces/acme/services/ledger", service("ledger", &spec));
    reconcile_isolated(&api).await;
    assert_eq!(rules(&api), 3);
    put(&api, &fixtures::with_container());
    reconcile_isolated(&api).await;
    assert_eq!(rules(&api), 0, "a server without egress asks no DNS");
    assert_eq!(reason(&api, ConditionType::NetworkReady), "Isolated");
}

#[tokio::test]
async fn a_server_outside_of_the_cluster_at_a_private_address_stalls_the_skill() {
    let mut skill = fixtures::with_uri();
    skill.spec.mcp_server.as_mut().unwrap().uri = Some("https://169.254.169.254/mcp".into());
    let api = FakeApi::default();
    put(&api, &skill);
    for _ in 0..2 {
        reconcile_isolated(&api).await;
        assert_eq!(reason(&api, ConditionType::Stalled), "EgressNotAllowed");
        assert!(!writes(&api).iter().any(|write| write.contains("/pods/")), "no probe asks the server");
    }
    // The rules of addresses do not depend on network policies.
    reconcile_once(&api).await;
    assert_eq!(reason(&api, ConditionType::Stalled), "EgressNotAllowed");
}

#[tokio::test]
async fn a_service_without_selector_is_not_probed_and_stalls_the_skill() {
    let spec = |selector: Value| json!({"clusterIP": "10.0.0.2", "selector": selector, "ports": [{"port": 8090}]});
    let api = FakeApi::default();
    api.put(NAMED_SERVICE, service("shared-orders", &spec(Value::Null)));
    // The slice of a Service without selector can name any address, such as that of another tenant.
    api.put(NAMED_SLICE, ready_slice());
    put(&api, &fixtures::with_service());
    let is_probed = |api: &FakeApi| writes(api).iter().any(|write| write.contains("/pods/"));
    for _ in 0..2 {
        reconcile_isolated(&api).await;
        assert_eq!(reason(&api, ConditionType::NetworkReady), "EgressNotAllowed");
        assert!(!is_probed(&api), "no probe asks the server");
    }
    api.put(NAMED_SERVICE, service("shared-orders", &spec(json!({"app": "orders"}))));
    reconcile_isolated(&api).await;
    assert!(is_probed(&api), "the same server is probed once its Service has a selector");
}

#[tokio::test]
async fn policies_are_deleted_if_they_are_switched_off_or_not_needed() {
    let api = FakeApi::default();
    put(&api, &fixtures::with_container());
    reconcile_isolated(&api).await;
    put(&api, &fixtures::with_service());
    writes(&api);
    reconcile_isolated(&api).await;
    let deleted = |api: &FakeApi| -> Vec<String> {
        policy_writes(api).into_iter().filter(|write| write.starts_with("delete")).collect()
    };
    assert_eq!(deleted(&api), [format!("delete {}", path("orders-mcp"))]);
    put(&api, &fixtures::with_service());
    reconcile_once(&api).await;
    let rest = ["bloomery-isolation", "orders-worker"];
    assert_eq!(deleted(&api), rest.map(|name| format!("delete {}", path(name))));
    assert_eq!(reason(&api, ConditionType::NetworkReady), "NotIsolated");
}

#[tokio::test]
async fn a_policy_of_another_owner_is_left_and_named() {
    let api = FakeApi::default();
    let foreign = json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"namespace": "acme", "name": "bloomery-isolation", "uid": "foreign"}, "spec": {"podSelector": {}},
    });
    api.put(&path("bloomery-isolation"), foreign);
    put(&api, &fixtures::without_server());
    reconcile_isolated(&api).await;
    assert_eq!(api.get(&path("bloomery-isolation"))["metadata"]["uid"], "foreign");
    assert_eq!(reason(&api, ConditionType::NetworkReady), "NameTaken");
}
