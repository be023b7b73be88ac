//! Restricts the addresses that endpoints may have (`docs/explanation/design.md`, sections 6 and 7).
//!
//! A name can resolve to another address at any time. So an address in a URL is checked before the request is sent, and the address
//! of a name is checked in the resolver of the connection. The connection then uses the checked address. The name of a cluster's
//! Service is refused whatever its address, unless the Service belongs to the tenant, or the cluster's admin shares it.
//!
//! Models, MCP servers and proxies follow the same rules as endpoints.

mod api_server;

pub use api_server::ApiServer;

use bloomery_crds::address::{AddressKind, Place, is_same_host, is_service, normalize, parse_address, reached};
use ipnet::IpNet;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::borrow::Cow;
use std::io;
use std::net::{IpAddr, SocketAddr};

/// The addresses that endpoints may have: public addresses, addresses that belong to the caller, listed ranges and shared hosts. The
/// default allows public addresses only.
#[derive(Debug, Clone, Default)]
pub struct AddressPolicy {
    caller: Caller,
    ranges: Vec<IpNet>,
    shared: Vec<String>,
    denied: Vec<IpNet>,
    api_server: ApiServer,
    names: Names,
}

/// The source of the addresses of names.
#[derive(Debug, Clone, Default)]
enum Names {
    /// The resolver of the system.
    #[default]
    System,
    /// The answers of a test.
    #[cfg(test)]
    Scripted(std::sync::Arc<tests::Answers>),
}

impl Names {
    async fn look_up(&self, name: &str) -> io::Result<Vec<SocketAddr>> {
        match self {
            Self::System => Ok(tokio::net::lookup_host((name, 0)).await?.collect()),
            #[cfg(test)]
            Self::Scripted(answers) => Ok(answers.take(name)),
        }
    }
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
        Self { caller, ranges, ..Self::default() }
    }

    /// Returns a policy that also allows these hosts at private addresses.
    #[must_use]
    pub fn with_shared(self, shared: Vec<String>) -> Self {
        Self { shared, ..self }
    }

    /// Returns a policy that refuses these ranges, whatever else allows them.
    #[must_use]
    pub fn without_ranges(self, denied: Vec<IpNet>) -> Self {
        Self { denied, ..self }
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
        let namespace = match &self.caller {
            Caller::Pod { namespace } => Some(namespace.as_str()),
            Caller::Unknown | Caller::LocalMachine => None,
        };
        match Place::of(host, namespace) {
            Place::ApiServer => {
                Some(format!("{host} is the API server of the cluster, which is not allowed as an endpoint"))
            }
            Place::OtherInCluster if !self.is_shared(host) => Some(format!(
                "{host} is not a Service of the Job's namespace, and the chart's value network.shared does not list it"
            )),
            Place::OwnService | Place::OtherInCluster | Place::Elsewhere => None,
        }
    }

    fn is_shared(&self, host: &str) -> bool {
        self.shared.iter().any(|shared| is_same_host(shared, host))
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
        let is_in =
            |ranges: &[IpNet], address: IpAddr| ranges.iter().any(|range| range.contains(&address.to_canonical()));
        if is_in(&self.denied, address) || is_in(&self.denied, reached(address)) {
            return Some(format!("{host} is at {address}, which the chart's value network.deny refuses"));
        }
        let is_listed = || is_in(&self.ranges, address);
        let is_allowed = match (kind, &self.caller) {
            (AddressKind::Public, _) | (AddressKind::Private | AddressKind::Loopback, Caller::LocalMachine) => true,
            (AddressKind::Private, Caller::Pod { namespace }) => {
                is_service(host, namespace) || is_listed() || self.is_shared(host)
            }
            (_, _) => is_listed(),
        };
        (!is_allowed).then(|| {
            let remedy = match self.caller {
                Caller::LocalMachine => "",
                Caller::Unknown | Caller::Pod { .. } => {
                    ". Endpoints may be at public addresses, at Services of the Job's namespace (<service> or \
                     <service>.<namespace>.svc), in the ranges of the chart's value worker.endpointRanges, and at the hosts of \
                     network.shared"
                }
            };
            format!("{host} is at {address}, {kind}{remedy}")
        })
    }
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
            let found = policy.names.look_up(&policy.lookup_name(host)).await?;
            match found.iter().find_map(|address| policy.refusal(host, address.ip())) {
                Some(refusal) => Err(refusal.into()),
                None => Ok(Box::new(found.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests;
