//! Evaluates network policies as the Kubernetes documentation defines them. It is the oracle of tests, so it shares no code with the
//! builders.

use crate::settings::LABEL_NAMESPACE;
use ipnet::IpNet;
use k8s_openapi::api::networking::v1::{NetworkPolicy, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::collections::BTreeMap;
use std::net::IpAddr;

/// An end of a connection: a pod, or a host outside of the pods.
#[derive(Debug, Clone)]
pub(super) struct End {
    /// The namespace and the labels, if it is a pod.
    pub(super) pod: Option<(String, BTreeMap<String, String>)>,
    /// The address.
    pub(super) address: IpAddr,
    /// The named ports.
    pub(super) ports: BTreeMap<String, u16>,
}

/// Returns whether the policies allow a TCP connection.
pub(super) fn allows(policies: &[NetworkPolicy], from: &End, to: &End, port: u16) -> bool {
    allows_egress(policies, from, to, (port, "TCP")) && allows_ingress(policies, from, to, port)
}

/// Returns whether the policies allow `from` to send to a port and protocol.
pub(super) fn allows_egress(policies: &[NetworkPolicy], from: &End, to: &End, (port, protocol): (u16, &str)) -> bool {
    let mut isolating = isolating(policies, from, "Egress").peekable();
    isolating.peek().is_none()
        || isolating.any(|(namespace, spec)| {
            spec.egress.iter().flatten().any(|rule| {
                matches_peers(rule.to.as_deref(), namespace, to)
                    && matches_ports(rule.ports.as_deref(), to, (port, protocol))
            })
        })
}

fn allows_ingress(policies: &[NetworkPolicy], from: &End, to: &End, port: u16) -> bool {
    let mut isolating = isolating(policies, to, "Ingress").peekable();
    isolating.peek().is_none()
        || isolating.any(|(namespace, spec)| {
            spec.ingress.iter().flatten().any(|rule| {
                matches_peers(rule.from.as_deref(), namespace, from)
                    && matches_ports(rule.ports.as_deref(), to, (port, "TCP"))
            })
        })
}

/// The policies of a direction that select a pod, each with its namespace.
fn isolating<'a>(
    policies: &'a [NetworkPolicy],
    end: &'a End,
    direction: &'a str,
) -> impl Iterator<Item = (&'a str, &'a NetworkPolicySpec)> {
    policies.iter().filter_map(move |policy| {
        let (namespace, labels) = end.pod.as_ref()?;
        let spec = policy.spec.as_ref()?;
        let is_of_direction = spec.policy_types.iter().flatten().any(|kind| kind == direction);
        // A policy without a selector selects all pods of its namespace.
        let selects = spec.pod_selector.as_ref().is_none_or(|selector| matches(selector, labels));
        let own = policy.metadata.namespace.as_deref()?;
        (own == namespace && is_of_direction && selects).then_some((own, spec))
    })
}

fn matches_peers(peers: Option<&[NetworkPolicyPeer]>, namespace: &str, end: &End) -> bool {
    let peers = peers.unwrap_or_default();
    peers.is_empty() || peers.iter().any(|peer| matches_peer(peer, namespace, end))
}

fn matches_peer(peer: &NetworkPolicyPeer, namespace: &str, end: &End) -> bool {
    if let Some(block) = &peer.ip_block {
        let contains = |range: &String| range.parse::<IpNet>().unwrap().contains(&end.address);
        return contains(&block.cidr) && !block.except.iter().flatten().any(contains);
    }
    let Some((pod_namespace, labels)) = &end.pod else { return false };
    let is_in_namespace = match &peer.namespace_selector {
        None => pod_namespace == namespace,
        Some(selector) => matches(selector, &BTreeMap::from([(LABEL_NAMESPACE.to_owned(), pod_namespace.clone())])),
    };
    is_in_namespace && peer.pod_selector.as_ref().is_none_or(|selector| matches(selector, labels))
}

fn matches_ports(ports: Option<&[NetworkPolicyPort]>, to: &End, (port, protocol): (u16, &str)) -> bool {
    let ports = ports.unwrap_or_default();
    ports.is_empty()
        || ports.iter().any(|allowed| {
            let is_port = match &allowed.port {
                None => true,
                Some(IntOrString::Int(number)) => *number == i32::from(port),
                Some(IntOrString::String(name)) => to.ports.get(name) == Some(&port),
            };
            assert_eq!(allowed.end_port, None, "the evaluator knows no ranges of ports");
            is_port && allowed.protocol.as_deref().unwrap_or("TCP") == protocol
        })
}

fn matches(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let has = |(name, value): (&String, &String)| labels.get(name) == Some(value);
    let mut expressions = selector.match_expressions.iter().flatten();
    selector.match_labels.iter().flatten().all(has)
        && expressions.all(|expression| {
            let listed = |value: &String| expression.values.iter().flatten().any(|listed| listed == value);
            let found = labels.get(&expression.key);
            match expression.operator.as_str() {
                "In" => found.is_some_and(listed),
                "NotIn" => !found.is_some_and(listed),
                "Exists" => found.is_some(),
                "DoesNotExist" => found.is_none(),
                other => panic!("{other} is no operator"),
            }
        })
}
