//! Where the API server of the cluster is: no endpoint of anybody.

use super::address_in;
use super::kind::Kind;
use std::net::IpAddr;

/// The Service by which every pod finds it.
const SERVICE: &str = "kubernetes.default.svc";

/// What a pod knows of where it is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ApiServer {
    /// There is none, or nobody has said: this is no pod.
    #[default]
    None,
    /// At these addresses, as they are compared.
    At(Vec<IpAddr>),
    /// It has a name of which nobody knows now where it leads: any private address may be it.
    Unknown,
}

impl ApiServer {
    /// From what a pod is told (`KUBERNETES_SERVICE_HOST`): an address nearly everywhere. A name is looked up, and the
    /// Service as well, which is then somewhere else.
    pub async fn told(host: Option<&str>) -> Self {
        let Some(host) = host else { return Self::None };
        if let Some(address) = address_in(host) {
            return Self::At(vec![address.to_canonical()]);
        }
        let mut addresses = Vec::new();
        for name in [host, SERVICE] {
            let Ok(found) = tokio::net::lookup_host((name, 0)).await else { return Self::Unknown };
            addresses.extend(found.map(|address| address.ip().to_canonical()));
        }
        if addresses.is_empty() { Self::Unknown } else { Self::At(addresses) }
    }

    /// Why an address may not be called, to go on after it.
    pub(super) fn refusal(&self, address: IpAddr, kind: Kind) -> Option<&'static str> {
        match self {
            Self::At(addresses) if addresses.contains(&address) => {
                Some("the API server of the cluster, which is no endpoint")
            }
            Self::Unknown if kind != Kind::Public => {
                Some("which may be the API server of the cluster: where that is could not be found out")
            }
            Self::None | Self::At(_) | Self::Unknown => None,
        }
    }
}

/// Whether a name, in lower case, is one that every cluster gives it.
pub(super) fn is_name(name: &str) -> bool {
    matches!(name, "kubernetes" | "kubernetes.default" | SERVICE | "kubernetes.default.svc.cluster.local")
}
