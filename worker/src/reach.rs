//! Which addresses endpoints may be at (`design.md`, sections 6 and 7).
//!
//! A URL is text, and who answers for a name can change its mind. So an address is looked at where it is known: one that
//! stands in the URL before anything is sent, one that a name resolves to by the resolver that the connection is made
//! through. What was looked at is what is connected to.

mod kind;

use ipnet::IpNet;
use kind::Kind;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::net::{IpAddr, SocketAddr};

/// Which addresses endpoints may be at: public ones, and those that are listed. The default lists none.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    whence: Whence,
    ranges: Vec<IpNet>,
    api_server: Option<IpAddr>,
}

/// Where the calls come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Whence {
    /// A pod, which sees much of a cluster that its tenant does not; but for Services of this namespace.
    #[default]
    Nowhere,
    Namespace(String),
    /// The machine of whoever bound the endpoint.
    Local,
}

impl Reach {
    /// From a worker's pod: also Services of its namespace, and addresses in `ranges`.
    pub fn of_namespace(namespace: &str, ranges: Vec<IpNet>) -> Self {
        Self { whence: Whence::Namespace(namespace.to_owned()), ranges, api_server: None }
    }

    /// The same, but for the API server of the cluster, which nothing lists and no name leads to.
    #[must_use]
    pub fn without_api_server(self, api_server: Option<IpAddr>) -> Self {
        Self { api_server, ..self }
    }

    /// From the machine of the person who bound the endpoint: also this machine, and private networks.
    pub fn local() -> Self {
        Self { whence: Whence::Local, ..Self::default() }
    }

    /// Why a host that is an address itself may not be called; of a name, nothing.
    pub fn refusal_of_literal(&self, host: &str) -> Option<String> {
        let address = host.trim_start_matches('[').trim_end_matches(']').parse().ok()?;
        self.refusal(host, address)
    }

    /// Why a host that is at an address may not be called.
    fn refusal(&self, host: &str, address: IpAddr) -> Option<String> {
        let kind = Kind::of(address);
        if self.api_server == Some(address.to_canonical()) {
            return Some(format!("{host} is at {address}, the API server of the cluster, which is no endpoint"));
        }
        let is_listed = || self.ranges.iter().any(|range| range.contains(&address.to_canonical()));
        let is_allowed = match (kind, &self.whence) {
            (Kind::Public, _) | (Kind::Private | Kind::Loopback, Whence::Local) => true,
            (Kind::Private, Whence::Namespace(namespace)) => is_service(host, namespace) || is_listed(),
            (_, _) => is_listed(),
        };
        (!is_allowed).then(|| {
            let remedy = match self.whence {
                Whence::Local => "",
                Whence::Nowhere | Whence::Namespace(_) => {
                    ": endpoints are at public addresses, Services of the Job's namespace, and what the chart's \
                     worker.endpointRanges list"
                }
            };
            format!("{host} is at {address}, {kind}{remedy}")
        })
    }
}

/// Whether a host is the name of a Service of a namespace. Names that the public DNS could have too are none: `shop.dev`
/// is somebody's domain, even where there is a namespace `dev`.
fn is_service(host: &str, namespace: &str) -> bool {
    let host = host.trim_end_matches('.').to_ascii_lowercase();
    match host.split_once('.') {
        None => true,
        Some((_, rest)) => rest == format!("{namespace}.svc") || rest == format!("{namespace}.svc.cluster.local"),
    }
}

/// Looks names up, and gives no address that may not be called. Where one of several may not, none of them is given.
impl Resolve for Reach {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.clone();
        Box::pin(async move {
            let host = name.as_str();
            let found: Vec<SocketAddr> = tokio::net::lookup_host((host, 0)).await?.collect();
            match found.iter().find_map(|address| reach.refusal(host, address.ip())) {
                Some(refusal) => Err(refusal.into()),
                None => Ok(Box::new(found.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests;
