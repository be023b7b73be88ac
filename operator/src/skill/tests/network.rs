//! The network policies of a Skill.

use super::*;

const POLICIES: &str = "/apis/networking.k8s.io/v1/namespaces/acme/networkpolicies";

/// The policies of a Skill with an MCP server in a container.
const ALL: [&str; 3] = ["bloomery-isolation", "orders-mcp", "orders-worker"];

fn path(name: &str) -> String {
    format!("{POLICIES}/{name}")
}

/// Reconciles the Skill once, with an operator that has just started and writes network policies.
async fn reconcile_isolated(api: &FakeApi) {
    let network = json!({"policies": true, "deny": ["10.0.0.0/24"], "operator": {"app": "bloomery"}});
    let context = api.operator_with(&[&format!("--network={network}")]).await;
    let skill = serde_json::from_value(api.get(SKILL)).unwrap();
    Box::pin(reconcile(skill, context)).await.unwrap();
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
    let mut other = fixtures::model("other");
    other.spec.base_url = "https://other.example:8443/v1".to_owned();
    api.put(&MODEL.replace("default", "other"), serde_json::to_value(other).unwrap());
    reconcile_isolated(&api).await;
    assert_eq!(policy_writes(&api), ALL.map(|name| format!("apply {}", path(name))));
    assert_eq!(reason(&api, ConditionType::Accepted), "Invalid");
    let connects_to_other = |api: &FakeApi| {
        let rules = api.get(&path("orders-worker"))["spec"]["egress"].as_array().unwrap().clone();
        rules.iter().any(|rule| rule["ports"][0]["port"] == 8443 && rule["to"][0].get("ipBlock").is_some())
    };
    assert!(!connects_to_other(&api));
    // The earlier spec may have named another Model.
    api.put(JOB, job_on(&json!({"name": "orders-earlier", "digest": format!("sha256:{}", "a".repeat(64))})));
    reconcile_isolated(&api).await;
    assert!(connects_to_other(&api));
    policy_writes(&api);
    reconcile_once(&api).await;
    assert_eq!(policy_writes(&api), ALL.map(|name| format!("delete {}", path(name))));
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
