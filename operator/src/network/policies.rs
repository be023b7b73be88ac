//! Builds the network policies.

use super::egress::{rule, tcp};
use crate::owned;
use crate::settings::{LABEL_NAMESPACE, NetworkSettings, Settings};
use bloomery_crds::names;
use bloomery_crds::pod::MCP_CONTAINER;
use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort,
    NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::collections::BTreeMap;

/// The label with the purpose of the policies that belong to no other component.
const COMPONENT: &str = "network";

/// The components of the pods that connect to MCP servers.
const CALLERS: [&str; 2] = ["worker", names::COMPONENT_PROBE];

/// Builds the policy that isolates all pods which the operator creates in a namespace. No object owns it: it also isolates pods whose Skill
/// is deleted.
pub fn isolation(namespace: &str) -> NetworkPolicy {
    let metadata = ObjectMeta {
        namespace: Some(namespace.to_owned()),
        name: Some(names::ISOLATION_POLICY.to_owned()),
        labels: Some(owned::labels(COMPONENT)),
        ..ObjectMeta::default()
    };
    policy(metadata, selector([(names::LABEL_MANAGED_BY, names::MANAGER)]), Vec::new(), Vec::new())
}

/// Builds the policy of a Skill's workers and probes: they connect to DNS, the report endpoint, the Skill's own MCP server, and what
/// `rules` allow. `metadata` has the name.
pub fn of_workers(
    metadata: ObjectMeta,
    skill: &str,
    rules: Vec<NetworkPolicyEgressRule>,
    settings: &Settings,
) -> NetworkPolicy {
    let own_server = NetworkPolicyPeer { pod_selector: Some(server_pods(skill)), ..NetworkPolicyPeer::default() };
    let common = [
        dns(&settings.network),
        report_endpoint(settings),
        // The policy of the server restricts the port.
        NetworkPolicyEgressRule { to: Some(vec![own_server]), ports: None },
    ];
    policy(metadata, caller_pods(skill), Vec::new(), without_duplicates(common.into_iter().chain(rules)))
}

/// Builds the policy of the pods of a Skill's MCP server: the Skill's workers and probes connect to its port, and it connects to what
/// `rules` allow.
///
/// The port is named. During a rollout, old and new pods may listen on different ports, and each is open on its own.
pub fn of_mcp_server(
    metadata: ObjectMeta,
    skill: &str,
    mut rules: Vec<NetworkPolicyEgressRule>,
    settings: &Settings,
) -> NetworkPolicy {
    let callers = NetworkPolicyPeer { pod_selector: Some(caller_pods(skill)), ..NetworkPolicyPeer::default() };
    let port = NetworkPolicyPort { port: Some(IntOrString::String(MCP_CONTAINER.to_owned())), ..tcp(0) };
    let ingress = NetworkPolicyIngressRule { from: Some(vec![callers]), ports: Some(vec![port]) };
    // A server that may connect to nothing needs no names.
    if !rules.is_empty() {
        rules.insert(0, dns(&settings.network));
    }
    policy(metadata, server_pods(skill), vec![ingress], without_duplicates(rules))
}

/// Builds the policy of a Job's workers: they connect to what `rules` allow, in addition to what their Skill allows.
pub fn of_job(metadata: ObjectMeta, job: &str, rules: Vec<NetworkPolicyEgressRule>) -> NetworkPolicy {
    let pods = selector([(names::LABEL_MANAGED_BY, names::MANAGER), (names::LABEL_JOB, job)]);
    policy(metadata, pods, Vec::new(), without_duplicates(rules))
}

/// Lists are never absent: the operator then also removes the rules that another writer adds.
fn policy(
    metadata: ObjectMeta,
    pods: LabelSelector,
    ingress: Vec<NetworkPolicyIngressRule>,
    egress: Vec<NetworkPolicyEgressRule>,
) -> NetworkPolicy {
    NetworkPolicy {
        metadata,
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(pods),
            ingress: Some(ingress),
            egress: Some(egress),
            policy_types: Some(["Ingress", "Egress"].map(str::to_owned).into()),
        }),
    }
}

fn dns(network: &NetworkSettings) -> NetworkPolicyEgressRule {
    rule(network.dns.peers.clone(), network.dns.ports.clone())
}

fn report_endpoint(settings: &Settings) -> NetworkPolicyEgressRule {
    let operator = NetworkPolicyPeer {
        namespace_selector: Some(selector([(LABEL_NAMESPACE, settings.pod_namespace.as_str())])),
        pod_selector: Some(LabelSelector {
            match_labels: Some(settings.network.operator.clone()),
            ..LabelSelector::default()
        }),
        ..NetworkPolicyPeer::default()
    };
    let port: NetworkPolicyPort = tcp(settings.report.addr.port());
    rule(vec![operator], vec![port])
}

fn caller_pods(skill: &str) -> LabelSelector {
    LabelSelector {
        match_expressions: Some(vec![LabelSelectorRequirement {
            key: names::LABEL_COMPONENT.to_owned(),
            operator: "In".to_owned(),
            values: Some(CALLERS.map(str::to_owned).into()),
        }]),
        ..selector([(names::LABEL_MANAGED_BY, names::MANAGER), (names::LABEL_SKILL, skill)])
    }
}

fn server_pods(skill: &str) -> LabelSelector {
    selector([(names::LABEL_MANAGED_BY, names::MANAGER), (names::LABEL_SKILL, skill), (names::LABEL_COMPONENT, "mcp")])
}

fn selector<const N: usize>(labels: [(&str, &str); N]) -> LabelSelector {
    let labels: BTreeMap<String, String> =
        labels.into_iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
    LabelSelector { match_labels: Some(labels), ..LabelSelector::default() }
}

fn without_duplicates(rules: impl IntoIterator<Item = NetworkPolicyEgressRule>) -> Vec<NetworkPolicyEgressRule> {
    let mut kept: Vec<NetworkPolicyEgressRule> = Vec::new();
    for rule in rules {
        if !kept.contains(&rule) {
            kept.push(rule);
        }
    }
    kept
}
