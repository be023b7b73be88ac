//! Tests of the policies: golden files, every pair of pods and hosts, and properties.

use super::destination::{Destination, of_annotation, to_annotation};
use super::egress::{Egress, Obstacle};
use super::evaluate::{End, allows, allows_egress};
use super::policies;
use crate::owned;
use crate::settings::Settings;
use bloomery_crds::address::AddressKind;
use bloomery_crds::names;
use clap::Parser;
use ipnet::IpNet;
use k8s_openapi::api::core::v1::{Pod, Service};
use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicyEgressRule};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

/// The labels of the operator's pods, if the release is called `bloomery`.
const OPERATOR: &[(&str, &str)] = &[
    ("app.kubernetes.io/component", "operator"),
    ("app.kubernetes.io/instance", "bloomery"),
    ("app.kubernetes.io/name", "bloomery"),
];

fn settings(network: &Value, ranges: &[IpNet]) -> Settings {
    let network = format!("--network={network}");
    let needed = ["operator", "--pod-name=op-0", "--pod-namespace=bloomery", "--worker-image=worker:1", &network];
    let mut settings = Settings::try_parse_from(needed).unwrap();
    settings.worker.endpoint_ranges = ranges.to_vec();
    settings
}

/// An installation with a shared gateway, and the ranges of the nodes denied.
fn installation() -> Settings {
    let gateway = json!({
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ai"}},
        "podSelector": {"matchLabels": {"app": "gateway"}},
    });
    let network = json!({
        "policies": true,
        "shared": [
            {"host": "gateway.ai.svc", "peers": [gateway], "ports": [{"port": 4000}]},
            {"host": "mirror.corp.example", "peers": [{"ipBlock": {"cidr": "10.0.0.0/16"}}]},
            {"host": "node.corp.example", "peers": [{"ipBlock": {"cidr": "10.0.7.7/32"}}]},
        ],
        "deny": ["10.0.7.0/24", "34.0.0.1/32"],
        "operator": OPERATOR.iter().copied().collect::<BTreeMap<_, _>>(),
    });
    settings(&network, &["10.20.0.0/16".parse().unwrap(), "10.0.7.0/25".parse().unwrap()])
}

/// The Services of the tenant.
fn service(name: &str) -> Option<Arc<Service>> {
    let spec = match name {
        "model" => json!({"selector": {"app": "model"}, "ports": [{"port": 8080, "targetPort": "http"}]}),
        "ledger" => json!({"selector": {"app": "ledger"}, "ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}]}),
        "headless" => json!({"clusterIP": "None", "selector": {"app": "db"}, "ports": [{"port": 5432}]}),
        "alias" => json!({"type": "ExternalName", "ports": [{"port": 80}]}),
        "by-hand" => json!({"ports": [{"port": 80}]}),
        _ => return None,
    };
    Some(Arc::new(serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).unwrap()))
}

fn to(host: &str, port: u16) -> Destination {
    Destination { host: host.to_owned(), port }
}

fn rule(settings: &Settings, host: &str, port: u16) -> Result<NetworkPolicyEgressRule, Obstacle> {
    Egress::new(settings, "acme", &service).rule(&to(host, port))
}

fn metadata(name: &str) -> ObjectMeta {
    ObjectMeta { namespace: Some("acme".into()), name: Some(name.into()), ..ObjectMeta::default() }
}

/// The policies of a tenant with the Skills `orders`, which has an MCP server, a Model and a shared gateway, and `plain`.
fn tenant(settings: &Settings) -> Vec<NetworkPolicy> {
    let rules = |hosts: &[(&str, u16)]| -> Vec<_> {
        hosts.iter().map(|(host, port)| rule(settings, host, *port).unwrap()).collect()
    };
    vec![
        policies::isolation("acme"),
        policies::of_workers(
            metadata("orders-worker"),
            "orders",
            rules(&[("model", 8080), ("api.example.com", 443), ("gateway.ai.svc", 443)]),
            settings,
        ),
        policies::of_mcp_server(metadata("orders-mcp"), "orders", rules(&[("ledger", 80)]), settings),
        policies::of_workers(metadata("plain-worker"), "plain", Vec::new(), settings),
        policies::of_mcp_server(metadata("plain-mcp"), "plain", Vec::new(), settings),
        policies::of_job(metadata("refund-job-01234"), "refund", rules(&[("headless", 5432), ("8.8.4.4", 853)])),
    ]
}

#[test]
fn golden_files() {
    let settings = installation();
    for policy in tenant(&settings) {
        let name = policy.metadata.name.clone().unwrap();
        insta::assert_snapshot!(name, serde_yaml::to_string(&serde_json::to_value(&policy).unwrap()).unwrap());
    }
}

fn pod(namespace: &str, address: &str, labels: &[(&str, &str)]) -> End {
    let labels = labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let ports = [("http".to_owned(), 9000), ("mcp".to_owned(), 8070)].into();
    End { pod: Some((namespace.to_owned(), labels)), address: address.parse().unwrap(), ports }
}

fn host(address: &str) -> End {
    End { pod: None, address: address.parse().unwrap(), ports: BTreeMap::new() }
}

/// A pod that the operator creates in a namespace.
fn created(namespace: &str, address: &str, component: &str, skill: &str, job: Option<&str>) -> End {
    let mut labels = owned::labels(component);
    labels.insert(names::LABEL_SKILL.to_owned(), skill.to_owned());
    labels.extend(job.map(|job| (names::LABEL_JOB.to_owned(), job.to_owned())));
    let labels: Vec<(&str, &str)> = labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    pod(namespace, address, &labels)
}

/// The pods and hosts of a cluster with two tenants, each with the ports that are tried.
fn cluster() -> Vec<(&'static str, End, &'static [u16])> {
    vec![
        ("worker", created("acme", "10.244.0.1", "worker", "orders", None), &[8080]),
        ("worker of the Job refund", created("acme", "10.244.0.2", "worker", "orders", Some("refund")), &[8080]),
        ("probe", created("acme", "10.244.0.3", "probe", "orders", None), &[8080]),
        ("MCP server", created("acme", "10.244.0.4", "mcp", "orders", None), &[8070, 22]),
        ("worker of another Skill", created("acme", "10.244.0.5", "worker", "plain", None), &[8080]),
        ("MCP server of another Skill", created("acme", "10.244.0.6", "mcp", "plain", None), &[8070]),
        ("cleanup", created("acme", "10.244.0.7", "reclaim", "orders", None), &[8080]),
        ("model", pod("acme", "10.244.0.8", &[("app", "model")]), &[9000, 8080]),
        ("ledger", pod("acme", "10.244.0.9", &[("app", "ledger")]), &[80]),
        ("database", pod("acme", "10.244.0.10", &[("app", "db")]), &[5432]),
        ("operator", pod("bloomery", "10.244.1.1", OPERATOR), &[8443, 8080]),
        ("neighbour of the operator", pod("bloomery", "10.244.1.2", &[("app", "x")]), &[8443]),
        ("DNS", pod("kube-system", "10.244.1.3", &[("k8s-app", "kube-dns")]), &[53]),
        ("gateway", pod("ai", "10.244.2.1", &[("app", "gateway")]), &[4000, 443]),
        ("model of another tenant", pod("rival", "10.244.3.1", &[("app", "model")]), &[9000]),
        ("worker of another tenant", created("rival", "10.244.3.2", "worker", "orders", Some("refund")), &[8080]),
        ("MCP server of another tenant", created("rival", "10.244.3.3", "mcp", "orders", None), &[8070]),
        ("API server", host("10.0.7.1"), &[443, 6443]),
        ("API server's Service", host("10.96.0.1"), &[443]),
        ("metadata", host("169.254.169.254"), &[80, 443]),
        ("listed range", host("10.20.0.5"), &[443]),
        ("denied address", host("34.0.0.1"), &[443]),
        ("denied address over NAT64", host("64:ff9b::2200:1"), &[443]),
        ("public", host("1.1.1.1"), &[443, 80]),
        ("public over IPv6", host("2606:4700::1111"), &[443]),
        ("public over NAT64", host("64:ff9b::101:101"), &[443]),
        ("metadata over NAT64", host("64:ff9b::a9fe:a9fe"), &[443]),
        ("other public", host("8.8.4.4"), &[853]),
    ]
}

/// What the policies of the tenant `acme` and of the tenant `rival` allow to or from pods of the operator in `acme`.
#[test]
fn every_pair_connects_only_as_it_should() {
    let settings = installation();
    let mut all = tenant(&settings);
    let of_rival = tenant(&settings).into_iter().map(|mut policy| {
        policy.metadata.namespace = Some("rival".to_owned());
        policy
    });
    all.extend(of_rival);
    let ends = cluster();
    let is_restricted = |end: &End| {
        let managed = |labels: &BTreeMap<String, String>| {
            labels.get(names::LABEL_MANAGED_BY).is_some_and(|by| by == names::MANAGER)
        };
        end.pod.as_ref().is_some_and(|(namespace, labels)| namespace == "acme" && managed(labels))
    };
    let mut allowed = BTreeSet::new();
    let mut tried = 0;
    for (from_name, from, _) in &ends {
        for (to_name, to, ports) in &ends {
            for port in ports.iter().filter(|_| from_name != to_name && (is_restricted(from) || is_restricted(to))) {
                tried += 1;
                if allows(&all, from, to, *port) {
                    allowed.insert(format!("{from_name} -> {to_name}:{port}"));
                }
            }
        }
    }
    let workers = ["worker", "worker of the Job refund", "probe"];
    let of_workers = [
        "operator:8443",
        "DNS:53",
        "MCP server:8070",
        "model:9000",
        "gateway:4000",
        "public:443",
        "public over IPv6:443",
        "public over NAT64:443",
        "listed range:443",
    ];
    let mut expected: BTreeSet<String> =
        workers.iter().flat_map(|from| of_workers.iter().map(move |to| format!("{from} -> {to}"))).collect();
    expected.extend(
        [
            "worker of the Job refund -> database:5432",
            "worker of the Job refund -> other public:853",
            "MCP server -> DNS:53",
            "MCP server -> ledger:80",
            "worker of another Skill -> operator:8443",
            "worker of another Skill -> DNS:53",
            "worker of another Skill -> MCP server of another Skill:8070",
        ]
        .map(str::to_owned),
    );
    assert_eq!(allowed, expected);
    assert!(tried > 300, "{tried}");
    // `hack/check-network` compares these pairs with the judgement of cyclonus.
    let restricted: Vec<&str> = ends.iter().filter(|(_, end, _)| is_restricted(end)).map(|(name, ..)| *name).collect();
    let ends: BTreeMap<&str, Value> = ends.iter().map(|(name, end, ports)| (*name, end_json(end, ports))).collect();
    let pairs = json!({"namespaces": ["acme", "rival"], "ends": ends, "restricted": restricted, "allowed": expected});
    insta::assert_snapshot!("pairs", serde_json::to_string_pretty(&pairs).unwrap());
}

fn end_json(End { pod, address, ports: names }: &End, tried: &[u16]) -> Value {
    let (namespace, labels) = pod.clone().unzip();
    json!({"namespace": namespace.unwrap_or_default(), "labels": labels, "address": address, "ports": tried, "names": names})
}

/// A rollout that puts a bridge before the server, or takes it away, has pods of both kinds for a while.
#[test]
fn old_and_new_pods_of_an_mcp_server_are_open_at_their_own_ports() {
    let all = tenant(&installation());
    let worker = created("acme", "10.244.0.1", "worker", "orders", None);
    let server = |port: u16| {
        let pod = created("acme", "10.244.0.4", "mcp", "orders", None);
        End { ports: [("mcp".to_owned(), port)].into(), ..pod }
    };
    for (named, tried, is_allowed) in [(8070, 8070, true), (9080, 9080, true), (9080, 8070, false)] {
        assert_eq!(allows(&all, &worker, &server(named), tried), is_allowed, "{named} {tried}");
    }
}

#[test]
fn dns_may_be_asked_over_udp_and_nothing_else_may() {
    let (settings, ends) = (installation(), cluster());
    let all = tenant(&settings);
    let find = |name: &str| &ends.iter().find(|(found, ..)| *found == name).unwrap().1;
    let worker = find("worker");
    assert!(allows_egress(&all, worker, find("DNS"), (53, "UDP")));
    assert!(
        !allows_egress(&all, find("MCP server of another Skill"), find("DNS"), (53, "UDP")),
        "it connects to nothing"
    );
    for (name, port) in [("public", 443), ("operator", 8443), ("public", 53)] {
        assert!(!allows_egress(&all, worker, find(name), (port, "UDP")), "{name}");
    }
}

#[rstest]
#[case::api_server("kubernetes.default.svc", 443, "is the API server of the cluster")]
#[case::short_api_server("kubernetes", 443, "is the API server of the cluster")]
#[case::another_tenant("model.rival.svc.cluster.local", 8080, "is not a Service of this namespace")]
#[case::metadata("169.254.169.254", 80, "a link-local, metadata or reserved address")]
#[case::mapped("::ffff:169.254.169.254", 80, "a link-local, metadata or reserved address")]
#[case::loopback("127.0.0.1", 80, "a loopback address")]
#[case::private("10.9.0.1", 443, "is a private address, and neither worker.endpointRanges nor network.shared")]
#[case::denied("10.0.7.9", 443, "network.deny refuses")]
#[case::denied_and_public("34.0.0.1", 443, "network.deny refuses")]
#[case::denied_and_shared("node.corp.example", 443, "network.deny refuses all addresses of node.corp.example")]
#[case::out_of_the_namespace("alias", 80, "of type ExternalName")]
#[case::no_pods("by-hand", 80, "has no selector")]
fn what_a_tenant_may_not_connect_to_has_no_rule(#[case] host: &str, #[case] port: u16, #[case] why: &str) {
    let Err(Obstacle::NotAllowed(found)) = rule(&installation(), host, port) else { panic!("{host} is allowed") };
    assert!(found.contains(why) && found.ends_with("(docs/how-to/network.md)"), "{found}");
}

#[rstest]
#[case::absent("later", 80, "the Service later does not exist in this namespace")]
#[case::another_port("ledger.acme.svc", 81, "the Service ledger has no TCP port 81")]
#[case::udp("ledger", 53, "the Service ledger has no TCP port 53")]
fn a_service_that_cannot_be_used_yet_is_no_refusal(#[case] host: &str, #[case] port: u16, #[case] why: &str) {
    assert_eq!(rule(&installation(), host, port), Err(Obstacle::NoService(why.to_owned())));
}

#[test]
fn without_policies_a_service_needs_no_selector() {
    let off = settings(&json!({}), &[]);
    assert!(matches!(rule(&off, "by-hand", 80), Err(Obstacle::NoService(_))));
    assert!(matches!(rule(&off, "alias", 80), Err(Obstacle::NotAllowed(_))));
    assert!(matches!(rule(&off, "169.254.169.254", 80), Err(Obstacle::NotAllowed(_))));
}

#[test]
fn a_denied_part_of_a_shared_range_is_excepted() {
    let rule = rule(&installation(), "mirror.corp.example", 443).unwrap();
    let block = rule.to.unwrap()[0].ip_block.clone().unwrap();
    assert_eq!((block.cidr.as_str(), block.except.unwrap()), ("10.0.0.0/16", vec!["10.0.7.0/24".to_owned()]));
}

/// A pod with this annotation.
fn connecting_to(text: &str) -> Pod {
    let annotations = BTreeMap::from([(names::ANNOTATION_CONNECTS_TO.to_owned(), text.to_owned())]);
    let metadata = ObjectMeta { annotations: Some(annotations), ..ObjectMeta::default() };
    Pod { metadata, ..Pod::default() }
}

#[rstest]
#[case::hosts("api.example.com:443  ledger:80 ", &[("api.example.com", 443), ("ledger", 80)])]
#[case::an_address("fd00::7:8443", &[("fd00::7", 8443)])]
#[case::no_destinations("host :80x host:0 host:65536 https://host/v1", &[])]
#[case::empty("", &[])]
fn an_annotation_lists_destinations(#[case] text: &str, #[case] expected: &[(&str, u16)]) {
    let expected: BTreeSet<Destination> = expected.iter().map(|(host, port)| to(host, *port)).collect();
    assert_eq!(of_annotation(&connecting_to(text)), expected);
    assert_eq!(of_annotation(&Pod::default()), BTreeSet::new());
}

fn any_range() -> impl Strategy<Value = IpNet> {
    (any::<u32>(), 4_u8..=32).prop_map(|(bits, length)| IpNet::new(Ipv4Addr::from_bits(bits).into(), length).unwrap())
}

proptest! {
    /// An address that a rule allows is in no denied range, and is public, listed or shared.
    #[test]
    fn no_rule_allows_a_denied_or_private_address(
        deny in prop::collection::vec(any_range(), 0..4),
        ranges in prop::collection::vec(any_range(), 0..3),
        shared in any_range(),
        literal in any::<u32>(),
        tried in any::<u32>(),
        nth in 0_usize..4,
    ) {
        let network = json!({
            "policies": true, "deny": deny.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "shared": [{"host": "shared.example", "peers": [{"ipBlock": {"cidr": shared.to_string()}}]}],
        });
        let settings = settings(&network, &ranges);
        let literal = Ipv4Addr::from_bits(literal).to_string();
        // The addresses at the edges of ranges too, which a random address rarely hits.
        let edges = deny.iter().chain(&ranges).chain([&shared]).flat_map(|range| [range.network(), range.broadcast()]);
        let mut addresses: Vec<IpAddr> = edges.chain([Ipv4Addr::from_bits(tried).into(), literal.parse().unwrap()]).collect();
        addresses.extend(["169.254.169.254", "10.96.0.1", "127.0.0.1", "fd00:ec2::254"].map(|text| text.parse::<IpAddr>().unwrap()));
        let name = ["api.example.com", "shared.example", literal.as_str(), "model"][nth];
        let Ok(rule) = rule(&settings, name, 8080) else { return Ok(()) };
        let policies = [policies::of_job(metadata("job"), "refund", vec![rule])];
        let worker = created("acme", "10.244.0.1", "worker", "orders", Some("refund"));
        for address in addresses {
            if !allows_egress(&policies, &worker, &host(&address.to_string()), (8080, "TCP")) {
                continue;
            }
            prop_assert!(!deny.iter().any(|range| range.contains(&address)), "{} allows {}", name, address);
            let is_shared = name == "shared.example" && shared.contains(&address);
            let is_listed = ranges.iter().any(|range| range.contains(&address));
            prop_assert!(AddressKind::classify(address) == AddressKind::Public || is_listed || is_shared, "{} allows {}", name, address);
        }
    }

    /// The operator reads the same destinations that it has written into an annotation.
    #[test]
    fn an_annotation_is_read_as_it_was_written(found in prop::collection::btree_set(("[a-z0-9:.-]{1,20}", 1_u16..), 0..9)) {
        let found: BTreeSet<Destination> = found.iter().map(|(host, port)| to(host, *port)).collect();
        prop_assert_eq!(of_annotation(&connecting_to(&to_annotation(&found))), found);
    }

    /// Every block is one that the API server accepts: each exception is a smaller part of the range.
    #[test]
    fn every_exception_is_within_its_range(deny in prop::collection::vec(any_range(), 0..6)) {
        let network = json!({"policies": true, "deny": deny.iter().map(ToString::to_string).collect::<Vec<_>>()});
        let Ok(rule) = rule(&settings(&network, &[]), "api.example.com", 443) else { return Ok(()) };
        for block in rule.to.unwrap().into_iter().filter_map(|peer| peer.ip_block) {
            let range: IpNet = block.cidr.parse().unwrap();
            prop_assert_eq!(range.trunc(), range);
            for except in block.except.into_iter().flatten() {
                let except: IpNet = except.parse().unwrap();
                prop_assert!(range.contains(&except) && except.prefix_len() > range.prefix_len(), "{} in {}", except, range);
            }
        }
    }
}
