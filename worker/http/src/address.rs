//! Restricts the addresses that endpoints may have (`docs/explanation/design.md`, sections 6 and 7).
//!
//! A name can resolve to another address at any time. So an address in a URL is checked before the request is sent, and the address
//! of a name is checked in the resolver of the connection. The connection then uses the checked address. The name of a cluster's
//! Service is refused whatever its address, unless the Service belongs to the tenant.

mod api_server;
mod kind;

pub use api_server::ApiServer;

use ipnet::IpNet;
use kind::{AddressKind, parse_address};
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

/// The addresses that endpoints may have: public addresses, addresses that belong to the caller, and listed ranges. The default allows
/// public addresses only.
#[derive(Debug, Clone, Default)]
pub struct AddressPolicy {
    caller: Caller,
    ranges: Vec<IpNet>,
    api_server: ApiServer,
}

/// The origin of the calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Caller {
    /// An unknown origin: private addresses and names of a cluster are refused.
    #[default]
    Unknown,
    /// A pod in this namespace. The network may allow it to reach the whole cluster, but only the Services of this namespace belong to
    /// its tenant.
    Pod {
        /// The tenant's namespace.
        namespace: String,
    },
    /// The machine of the person who bound the endpoint.
    LocalMachine,
}

impl AddressPolicy {
    /// Returns the policy of a worker's pod: public addresses, Services of its namespace, and addresses in `ranges`.
    pub fn for_pod(namespace: &str, ranges: Vec<IpNet>) -> Self {
        let caller = Caller::Pod { namespace: namespace.to_owned() };
        Self { caller, ranges, api_server: ApiServer::default() }
    }

    /// Returns the policy of a person's own machine: public addresses, this machine, and private networks.
    pub fn for_local_machine() -> Self {
        Self { caller: Caller::LocalMachine, ..Self::default() }
    }

    /// Returns a policy that also refuses the API server of the cluster, even if the address of the API server is in a listed range.
    #[must_use]
    pub fn without_api_server(self, api_server: ApiServer) -> Self {
        Self { api_server, ..self }
    }

    /// Returns the reason that a host must not be called, if that can be decided without resolving its name.
    pub fn refusal_before_lookup(&self, host: &str) -> Option<String> {
        match parse_address(host) {
            Some(address) => self.refusal(host, address),
            None => self.name_refusal(host),
        }
    }

    /// Returns the reason that a name must not be called at any address: it belongs to the cluster, but not to this tenant.
    fn name_refusal(&self, host: &str) -> Option<String> {
        if self.caller == Caller::LocalMachine {
            return None;
        }
        let name = normalize(host);
        if api_server::is_api_server_name(&name) {
            return Some(format!("{host} is the API server of the cluster, which is not allowed as an endpoint"));
        }
        let without_domain = name.strip_suffix(".cluster.local").unwrap_or(&name);
        let is_in_cluster = without_domain.rsplit_once('.').is_some_and(|(_, last)| last == "svc");
        let is_own = matches!(&self.caller, Caller::Pod { namespace } if is_service(host, namespace));
        (is_in_cluster && !is_own).then(|| format!("{host} is not a Service of the Job's namespace"))
    }

    /// Returns the name to look up for a host.
    ///
    /// In a pod, a name of one label means a Service of the pod's namespace. The search domains of a pod include those of its node. If
    /// the Service does not exist, a machine in the node's domains may have the same name. So the label is looked up as
    /// `{label}.{namespace}.svc`. This name has fewer dots than the `ndots:5` of a pod, so the resolver adds the cluster's domain.
    fn lookup_name<'h>(&self, host: &'h str) -> Cow<'h, str> {
        match &self.caller {
            Caller::Pod { namespace } if !normalize(host).contains(['.', ':']) => {
                Cow::Owned(format!("{}.{namespace}.svc", normalize(host)))
            }
            _ => Cow::Borrowed(host),
        }
    }

    /// Returns the reason that a host must not be called at an address.
    fn refusal(&self, host: &str, address: IpAddr) -> Option<String> {
        let kind = AddressKind::classify(address);
        if let Some(refusal) = self.name_refusal(host) {
            return Some(refusal);
        }
        if let Some(reason) = self.api_server.refusal(address.to_canonical(), kind) {
            return Some(format!("{host} is at {address}, {reason}"));
        }
        let is_listed = || self.ranges.iter().any(|range| range.contains(&address.to_canonical()));
        let is_allowed = match (kind, &self.caller) {
            (AddressKind::Public, _) | (AddressKind::Private | AddressKind::Loopback, Caller::LocalMachine) => true,
            (AddressKind::Private, Caller::Pod { namespace }) => is_service(host, namespace) || is_listed(),
            (_, _) => is_listed(),
        };
        (!is_allowed).then(|| {
            let remedy = match self.caller {
                Caller::LocalMachine => "",
                Caller::Unknown | Caller::Pod { .. } => {
                    ". Endpoints may be at public addresses, at Services of the Job's namespace, and in the ranges of the \
                     chart's value worker.endpointRanges"
                }
            };
            format!("{host} is at {address}, {kind}{remedy}")
        })
    }
}

/// Returns whether a host is the name of a Service in a namespace. A name that can exist in the public DNS does not count: `shop.dev`
/// is a public domain, even if there is a namespace `dev`.
fn is_service(host: &str, namespace: &str) -> bool {
    match normalize(host).split_once('.') {
        // A single label is a Service. An IPv6 address has no dot either.
        None => !host.contains(':'),
        Some((_, rest)) => rest == format!("{namespace}.svc") || rest == format!("{namespace}.svc.cluster.local"),
    }
}

/// Returns a name in the form in which names are compared: lower case, without the final dot.
fn normalize(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// Resolves names to allowed addresses. If one address of a name is refused, the whole lookup fails.
impl Resolve for AddressPolicy {
    fn resolve(&self, name: Name) -> Resolving {
        let policy = self.clone();
        Box::pin(async move {
            let host = name.as_str();
            if let Some(refusal) = policy.name_refusal(host) {
                return Err(refusal.into());
            }
            let found: Vec<SocketAddr> =
                tokio::net::lookup_host((policy.lookup_name(host).as_ref(), 0)).await?.collect();
            match found.iter().find_map(|address| policy.refusal(host, address.ip())) {
                Some(refusal) => Err(refusal.into()),
                None => Ok(Box::new(found.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests;
