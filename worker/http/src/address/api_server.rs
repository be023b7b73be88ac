//! The address of the cluster's API server, which is not allowed as an endpoint.

use bloomery_crds::address::{AddressKind, parse_address};
use std::net::IpAddr;

/// The name of the Service of the API server.
const SERVICE: &str = "kubernetes.default.svc";

/// The addresses of the API server, as known to this process.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ApiServer {
    /// No API server is known, because the process does not run in a pod.
    #[default]
    None,
    /// The API server has these addresses, in canonical form.
    At(Vec<IpAddr>),
    /// The name of the API server could not be resolved, so its address may be any that is not public.
    Unknown,
}

impl ApiServer {
    /// Resolves the value of `KUBERNETES_SERVICE_HOST`, which is nearly always an address. If the value is a name, it may have
    /// another address than the Service [`SERVICE`], so both are resolved.
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

    /// Returns the reason that an address must not be called, as a clause that follows the address.
    pub(super) fn refusal(&self, address: IpAddr, kind: AddressKind) -> Option<&'static str> {
        match self {
            Self::At(addresses) if addresses.contains(&address) => {
                Some("the API server of the cluster, which is not allowed as an endpoint")
            }
            Self::Unknown if kind != AddressKind::Public => {
                Some("which may be the API server of the cluster, whose address could not be resolved")
            }
            Self::None | Self::At(_) | Self::Unknown => None,
        }
    }
}
