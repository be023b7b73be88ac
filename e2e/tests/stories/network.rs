//! The network policies of the operator, and what tenants may not connect to.

use bloomery_crds::conditions::{self, ConditionType};
use bloomery_crds::names;
use bloomery_crds::v1alpha1::{McpServer, ModelSpec, SkillSpec};
use bloomery_e2e::harness::{Conversation, Tenant, Turn, call, cluster, conversation, refund_of, story, typed, until};
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicyEgressRule};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::{ListParams, Patch, PatchParams};
use kube::{Api, ResourceExt};
use serde_json::json;
use std::net::SocketAddr;

/// The network policy of a story that lets nothing connect to the pods of a server.
const CLOSED: &str = "closed-by-the-story";

/// Declares an API that Jobs may bind, and no tools.
fn use_an_api(spec: &mut SkillSpec) {
    spec.mcp_server = None;
    spec.tools = Vec::new();
    spec.resources =
        serde_json::from_value(json!([{"name": "api", "type": "api_endpoint", "required": true}])).expect("resources");
}

#[tokio::test]
async fn the_pods_of_a_tenant_have_policies_that_are_restored() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17")]).await;
        let skill = tenant.skill("cs-tier-1").await;
        let ready = skill.ready().await;
        assert!(conditions::is_true(&ready.conditions, ConditionType::NetworkReady));
        let policies = tenant.api::<NetworkPolicy>();
        let found = policies.list(&ListParams::default()).await.expect("policies can be listed");
        let mut found: Vec<String> = found.iter().map(ResourceExt::name_any).collect();
        found.sort();
        assert_eq!(found, [names::ISOLATION_POLICY, "cs-tier-1-mcp", "cs-tier-1-worker"]);
        tenant.remove::<NetworkPolicy>(names::ISOLATION_POLICY).await;
        let opened = Patch::Merge(json!({"spec": {"ingress": [{}]}}));
        policies.patch("cs-tier-1-mcp", &PatchParams::default(), &opened).await.expect("the policy is changed");
        until(&policies, "cs-tier-1-mcp", "the policy as the operator writes it", |policy| {
            let ingress = policy.spec.as_ref().and_then(|spec| spec.ingress.as_ref());
            ingress.and_then(|rules| rules.first()).is_some_and(|rule| rule.from.is_some())
        })
        .await;
        until(&policies, names::ISOLATION_POLICY, "the policy that isolates the pods", |_| true).await;
        tenant.job("refund").await.succeeded().await;
        shop.assert_refunded_once("A-17").await;
        skill.delete().await;
        bloomery_e2e::harness::gone(&policies, "cs-tier-1-mcp", None).await;
    })
    .await;
}

#[tokio::test]
async fn a_job_that_binds_an_api_has_a_policy_of_its_own() {
    let turns = [
        call("http_get", json!({"resource": "api", "path": "/effects/summary"})),
        Turn::answer("A-17").after_result("HTTP 200 OK"),
    ];
    story(async |tenant| {
        let shop = tenant.shop(&[conversation("A-17", turns)]).await;
        tenant.skill("cs-tier-1").with(use_an_api).await.ready().await;
        let job = tenant.job("bound").binding("api", json!({"value": shop.ledger.url})).await;
        job.succeeded().await;
        let name = names::job_policy(&job.name, &job.uid);
        let policy = tenant.api::<NetworkPolicy>().get(&name).await.expect("the Job has a policy");
        let egress = policy.spec.and_then(|spec| spec.egress).unwrap_or_default();
        assert_eq!(
            serde_json::to_value(&egress).expect("JSON")[0]["to"][0]["podSelector"]["matchLabels"]["app"],
            "ledger"
        );
        job.delete().await;
        bloomery_e2e::harness::gone(&tenant.api::<NetworkPolicy>(), &name, None).await;
    })
    .await;
}

/// Returns the rules for outgoing connections of a policy.
fn egress(policy: &NetworkPolicy) -> impl Iterator<Item = &NetworkPolicyEgressRule> {
    policy.spec.iter().flat_map(|spec| spec.egress.iter().flatten())
}

/// Returns whether a policy allows connections to the scripted model of the tenant.
fn allows_the_model(policy: &NetworkPolicy) -> bool {
    egress(policy).flat_map(|rule| rule.to.iter().flatten()).any(|peer| {
        let labels = peer.pod_selector.as_ref().and_then(|selector| selector.match_labels.as_ref());
        labels.and_then(|labels| labels.get("app")).is_some_and(|app| app == "model")
    })
}

/// Returns whether a policy allows connections to a port.
fn allows_port(policy: &NetworkPolicy, port: i32) -> bool {
    egress(policy).flat_map(|rule| rule.ports.iter().flatten()).any(|found| found.port == Some(IntOrString::Int(port)))
}

#[tokio::test]
async fn a_running_worker_keeps_the_address_of_a_model_that_changes() {
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17").hold(2, "thinking")]).await;
        tenant.skill("cs-tier-1").await.ready().await;
        let job = tenant.job("refund").await;
        shop.model.until_held("thinking").await;
        let moved = ModelSpec {
            base_url: "https://models.example:9443/v1".to_owned(),
            ..bloomery_testkit::suite::model(bloomery_crds::v1alpha1::ModelProvider::Openai)
        };
        tenant.model("default").with_spec(moved).await;
        let (policies, name) = (tenant.api::<NetworkPolicy>(), "cs-tier-1-worker");
        let policy = until(&policies, name, "a rule for the new address", |policy| allows_port(policy, 9443)).await;
        assert!(allows_the_model(&policy), "{policy:#?}");
        // If the cluster enforces policies, the worker still connects.
        shop.model.release("thinking").await;
        job.succeeded().await;
        shop.assert_refunded_once("A-17").await;
        until(&policies, name, "no rule for the old address", |policy| !allows_the_model(policy)).await;
    })
    .await;
}

#[tokio::test]
async fn what_a_tenant_may_not_connect_to_is_named_and_gets_no_policy() {
    story(async |tenant| {
        let shop = tenant.shop(&[]).await;
        let alias = json!({
            "metadata": {"name": "alias"}, "spec": {"type": "ExternalName", "externalName": "kubernetes.default.svc.cluster.local"},
        });
        tenant.create::<Service>(typed(alias)).await;
        for (name, url, proxy, why) in [
            ("metadata", "http://169.254.169.254/v1", None, "a link-local, metadata or reserved address"),
            ("api-server", "https://kubernetes.default.svc/v1", None, "is the API server of the cluster"),
            ("node", "http://10.0.0.1:30001/v1", None, "a private address"),
            ("neighbour", "http://model.another-tenant.svc:8080/v1", None, "is not a Service of this namespace"),
            ("alias", "http://alias:8080/v1", None, "of type ExternalName"),
            ("proxy", "https://api.openai.com/v1", Some("http://169.254.169.254:80"), "spec.proxy: 169.254.169.254"),
        ] {
            let spec = ModelSpec {
                base_url: url.to_owned(),
                proxy: proxy.map(str::to_owned),
                ..bloomery_testkit::suite::model(bloomery_crds::v1alpha1::ModelProvider::Openai)
            };
            tenant.model(name).with_spec(spec).await;
            tenant.until_model_stalled(name, "EgressNotAllowed", why).await;
        }
        let skill = tenant.skill("connected").with(|spec| {
            let server = spec.mcp_server.as_mut().expect("the Skill has a server");
            server.egress = serde_json::from_value(json!([{"host": "ledger.another-tenant.svc"}])).expect("egress");
        });
        let parts = ["spec.mcpServer.egress[0]", "is not a Service of this namespace"];
        skill.await.until_reason(ConditionType::NetworkReady, "EgressNotAllowed", &parts).await;
        tenant.skill("cs-tier-1").with(use_an_api).await.ready().await;
        let job = tenant.job("bound").binding("api", json!({"value": "http://169.254.169.254/latest"})).await;
        job.until_reason("EgressNotAllowed", &["spec.resources.api", "metadata"]).await;
        let policies = tenant.api::<NetworkPolicy>().list(&ListParams::default()).await.expect("policies can be listed");
        assert!(!policies.iter().any(|policy| policy.name_any() == names::job_policy(&job.name, &job.uid)));
        shop.model.assert_no_violations().await;
    })
    .await;
}

/// Returns whether the cluster enforces network policies. A probe cannot reach a server to which nothing may connect.
async fn enforces_policies(tenant: &Tenant) -> bool {
    let closed = json!({
        "metadata": {"name": CLOSED},
        "spec": {"podSelector": {"matchLabels": {"app": "orders"}}, "policyTypes": ["Ingress"], "ingress": []},
    });
    tenant.create::<NetworkPolicy>(typed(closed)).await;
    tenant.orders_server().await;
    let skill = tenant.skill("closed").served_by("orders").await;
    let found = skill
        .until("a probe that has ended", |status| {
            conditions::find(&status.conditions, ConditionType::McpVerified)
                .is_some_and(|verified| verified.status == "True" || verified.reason == "ProbeFailed")
        })
        .await;
    skill.delete().await;
    tenant.remove::<NetworkPolicy>(CLOSED).await;
    !conditions::is_true(&found.conditions, ConditionType::McpVerified)
}

#[tokio::test]
async fn a_cluster_that_enforces_policies_lets_pods_connect_only_to_what_is_listed() {
    let turns = [
        call("process_refund", json!({"order_id": "B-2", "amount": 1})),
        Turn::answer("B-2").after_result("the ledger cannot be reached"),
    ];
    story(async |tenant| {
        let shop = tenant.shop(&[refund_of("A-17"), conversation("B-2", turns)]).await;
        if !enforces_policies(tenant).await {
            eprintln!("skipped: the network plugin of this cluster does not enforce network policies");
            return;
        }
        // The worker reaches DNS, its model, its server and the operator, and the server its ledger.
        tenant.skill("cs-tier-1").await.ready().await;
        tenant.job("refund").await.succeeded().await;
        shop.assert_refunded_once("A-17").await;
        // The server of this Skill lists nothing.
        let unlisted = tenant.skill("unlisted").with(|spec| {
            let container = spec.mcp_server.take().and_then(|server| server.container);
            spec.mcp_server = Some(McpServer { container, ..McpServer::default() });
        });
        unlisted.await.ready().await;
        tenant.job("unlisted").for_skill("unlisted").goal("Refund order B-2").await.succeeded().await;
        assert!(!shop.ledger.summary().await.orders.contains_key("B-2"), "nothing was refunded");
    })
    .await;
}

/// An address with its port, and whether a server of the story can connect to it, if that is known.
type Attempt = (String, Option<bool>);

/// Returns the address of a Service.
async fn address_of(services: &Api<Service>, name: &str) -> String {
    let spec = services.get(name).await.expect("the Service exists").spec.expect("it has a spec");
    let ip = spec.cluster_ip.and_then(|ip| ip.parse().ok()).expect("it has an address");
    let port = spec.ports.iter().flatten().find_map(|port| port.port.try_into().ok()).expect("it has a port");
    SocketAddr::new(ip, port).to_string()
}

/// Returns a conversation in which the server attempts these connections.
fn connections(order: &str, attempts: &[Attempt]) -> Conversation {
    let mut turns = Vec::new();
    let mut expected = None;
    let calls = attempts.iter().map(|(address, _)| call("connect", json!({"address": address})));
    let outcomes = attempts.iter().map(|(address, connects)| {
        connects.map(|connects| format!("{address}: {}", if connects { "connected" } else { "not connected" }))
    });
    for (turn, outcome) in calls.zip(outcomes) {
        turns.push(after(turn, expected));
        expected = outcome;
    }
    turns.push(after(Turn::answer(order), expected));
    conversation(order, turns)
}

/// Expects the outcome of the call before a turn.
fn after(turn: Turn, outcome: Option<String>) -> Turn {
    match outcome {
        Some(outcome) => turn.after_result(&outcome),
        None => turn,
    }
}

/// Returns whether a pod of a tenant that the operator did not create can connect to an address.
async fn foreign_pod_connects(tenant: &Tenant, address: &str) -> bool {
    let pod = json!({
        "metadata": {"name": "foreign"},
        "spec": {
            "restartPolicy": "Never", "automountServiceAccountToken": false,
            "securityContext": {"runAsNonRoot": true, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "foreign", "image": cluster::image("e2e-stdio"), "args": ["connect", address],
                "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
            }],
        },
    });
    tenant.create::<Pod>(typed(pod)).await;
    let phase = |pod: &Pod| pod.status.as_ref().and_then(|status| status.phase.clone()).unwrap_or_default();
    let has_ended = |pod: &Pod| ["Succeeded", "Failed"].contains(&phase(pod).as_str());
    phase(&until(&tenant.api::<Pod>(), "foreign", "the end of a pod", has_ended).await) == "Succeeded"
}

/// If the cluster does not enforce policies, the forbidden connections succeed. So the story also shows that its attempts are real.
#[tokio::test]
async fn only_policies_that_are_enforced_keep_servers_from_other_tenants_and_the_api_server() {
    story(async |tenant| {
        let other = Tenant::open(tenant.cluster.clone()).await;
        let (enforces, ()) = tokio::join!(enforces_policies(tenant), other.orders_server());
        let of_cluster = Api::namespaced(tenant.cluster.client.clone(), "default");
        let attempts: [Attempt; 4] = [
            (address_of(&tenant.api(), "orders").await, Some(true)),
            (address_of(&other.api(), "orders").await, Some(!enforces)),
            (address_of(&of_cluster, "kubernetes").await, Some(!enforces)),
            ("169.254.169.254:80".to_owned(), enforces.then_some(false)),
        ];
        let model = tenant.model_server(&["A-17", "A-18"].map(|order| connections(order, &attempts))).await;
        tenant.model("default").await;
        let lists_orders = |spec: &mut SkillSpec| {
            let server = spec.mcp_server.as_mut().expect("the Skill has a server");
            server.egress = typed(json!([{"host": "orders", "port": 8080}]));
        };
        // One server in pods of its own, and one in the pods of the workers.
        let shared = tenant.skill("cs-tier-1").with_stdio_server().with(lists_orders).await;
        let sidecar = tenant.skill("sidecar").with_stdio_server().with_server_per_job().with(lists_orders).await;
        tokio::join!(shared.ready(), sidecar.ready());
        tenant.job("shared").await.succeeded().await;
        tenant.job("sidecar").for_skill("sidecar").goal("Refund order A-18").await.succeeded().await;
        model.assert_no_violations().await;
        let server = address_of(&tenant.api(), &names::mcp_server("cs-tier-1")).await;
        assert_eq!(foreign_pod_connects(&other, &server).await, !enforces, "{server}");
        other.delete().await;
    })
    .await;
}
