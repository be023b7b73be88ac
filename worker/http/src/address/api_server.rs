//! The address of the cluster's API server, which is never an endpoint.

use super::kind::{AddressKind, parse_address};
use std::net::IpAddr;

/// The Service by which every pod reaches the API server.
const SERVICE: &str = "kubernetes.default.svc";

/// What a pod knows about the address of the API server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ApiServer {
    /// There is none: the process does not run in a pod.
    #[default]
    None,
    /// The API server has these addresses, in canonical form.
    At(Vec<IpAddr>),
    /// The API server has a name that cannot be resolved now. It may be at any private address.
    Unknown,
}

impl ApiServer {
    /// Resolves the value of `KUBERNETES_SERVICE_HOST`, which is nearly always an address. If it is a name, the address of the
    /// Service [`SERVICE`] differs from it and counts, too.
    pub async fn resolve(host: Option<&str>) -> Self {
        let Some(host) = host else { return Self::None };
        if let Some(address) = parse_address(host) {
            return Self::At(vec![address.to_canonical()]);
        }
        let mut addresses = Vec::new();
        for name in [host, SERVICE] {
            let Ok(found) = tokio::net::lookup_host((name, 0)).await else { return Self::Unknown };
            addresses.extend(found.map(|address| address.ip().to_canonical()));
        }
        if addresses.is_empty() { Self::Unknown } else { Self::At(addresses) }
    }

    /// Returns why an address may not be called, as a clause that follows the address.
    pub(super) fn refusal(&self, address: IpAddr, kind: AddressKind) -> Option<&'static str> {
        match self {
            Self::At(addresses) if addresses.contains(&address) => {
                Some("the API server of the cluster, which is no endpoint")
            }
            Self::Unknown if kind != AddressKind::Public => {
                Some("which may be the API server of the cluster, whose address could not be resolved")
            }
            Self::None | Self::At(_) | Self::Unknown => None,
        }
    }
}

/// Returns whether a name, in lower case, is one that every cluster gives its API server.
pub(super) fn is_api_server_name(name: &str) -> bool {
    matches!(name, "kubernetes" | "kubernetes.default" | SERVICE | "kubernetes.default.svc.cluster.local")
}
