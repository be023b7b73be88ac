//! The network of tenants: whether the operator writes network policies, and what they allow besides public addresses and the Services
//! of the tenant's namespace.

use ipnet::IpNet;
use k8s_openapi::api::networking::v1::{NetworkPolicyPeer, NetworkPolicyPort};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use serde::{Deserialize, Deserializer, de};
use std::collections::BTreeMap;

/// The network of tenants.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct NetworkSettings {
    /// True if the operator writes network policies.
    pub policies: bool,
    /// The DNS servers of the cluster.
    pub dns: DnsServers,
    /// The hosts that all tenants may connect to, although they are at private addresses or in other namespaces.
    pub shared: Vec<SharedHost>,
    /// The ranges that no tenant may connect to, such as those of the nodes and of the API server.
    #[serde(deserialize_with = "ranges")]
    pub deny: Vec<IpNet>,
    /// The labels of the operator's pods.
    pub operator: BTreeMap<String, String>,
}

impl NetworkSettings {
    /// Returns the names or addresses of the hosts that all tenants may connect to.
    pub fn shared_hosts(&self) -> Vec<String> {
        self.shared.iter().map(|shared| shared.host.clone()).collect()
    }
}

/// The DNS servers of the cluster.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct DnsServers {
    /// Their pods or addresses.
    pub peers: Vec<NetworkPolicyPeer>,
    /// The ports of their pods.
    pub ports: Vec<NetworkPolicyPort>,
}

/// A host that all tenants may connect to.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SharedHost {
    /// The name or the address in URLs.
    pub host: String,
    /// The pods or addresses behind it.
    pub peers: Vec<NetworkPolicyPeer>,
    /// The ports of these pods or addresses. Default: the port of the URL.
    #[serde(default)]
    pub ports: Vec<NetworkPolicyPort>,
}

/// The label by which every namespace is named.
pub const LABEL_NAMESPACE: &str = "kubernetes.io/metadata.name";

impl Default for DnsServers {
    /// The DNS servers of nearly all clusters.
    fn default() -> Self {
        let labelled = |name: &str, value: &str| {
            let labels = BTreeMap::from([(name.to_owned(), value.to_owned())]);
            Some(LabelSelector { match_labels: Some(labels), ..LabelSelector::default() })
        };
        let port = |protocol: &str| NetworkPolicyPort {
            port: Some(IntOrString::Int(53)),
            protocol: Some(protocol.to_owned()),
            ..NetworkPolicyPort::default()
        };
        Self {
            peers: vec![NetworkPolicyPeer {
                namespace_selector: labelled(LABEL_NAMESPACE, "kube-system"),
                pod_selector: labelled("k8s-app", "kube-dns"),
                ..NetworkPolicyPeer::default()
            }],
            ports: vec![port("UDP"), port("TCP")],
        }
    }
}

/// Parses ranges in CIDR notation.
fn ranges<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<IpNet>, D::Error> {
    let texts = Vec::<String>::deserialize(deserializer)?;
    let parse =
        |text: &String| text.parse().map_err(|_| de::Error::custom(format!("{text} is no range such as 10.0.0.0/8")));
    texts.iter().map(parse).collect()
}
