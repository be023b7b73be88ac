//! Which addresses endpoints may be at (`docs/explanation/design.md`, sections 6 and 7).
//!
//! A URL is text, and who answers for a name can change its mind. So an address is looked at where it is known: one that
//! stands in the URL before anything is sent, one that a name resolves to by the resolver that the connection is made
//! through. What was looked at is what is connected to. Names that only a cluster has are looked at as well.

mod api_server;
mod kind;

pub use api_server::ApiServer;

use ipnet::IpNet;
use kind::Kind;
use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use std::borrow::Cow;
use std::net::{IpAddr, SocketAddr};

/// Which addresses endpoints may be at: public ones, and those that are listed. The default lists none.
#[derive(Debug, Clone, Default)]
pub struct Reach {
    whence: Whence,
    ranges: Vec<IpNet>,
    api_server: ApiServer,
}

/// Where the calls come from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum Whence {
    /// Nobody has said: nothing of any cluster or machine.
    #[default]
    Nowhere,
    /// A pod, which sees much of a cluster that its tenant does not. Services of this namespace are the tenant's.
    Namespace(String),
    /// The machine of whoever bound the endpoint.
    Local,
}

impl Reach {
    /// From a worker's pod: also Services of its namespace, and addresses in `ranges`.
    pub fn of_namespace(namespace: &str, ranges: Vec<IpNet>) -> Self {
        Self { whence: Whence::Namespace(namespace.to_owned()), ranges, api_server: ApiServer::default() }
    }

    /// The same, but for the API server of the cluster, which nothing lists and no name leads to.
    #[must_use]
    pub fn without_api_server(self, api_server: ApiServer) -> Self {
        Self { api_server, ..self }
    }

    /// From the machine of the person who bound the endpoint: also this machine, and private networks.
    pub fn local() -> Self {
        Self { whence: Whence::Local, ..Self::default() }
    }

    /// Why a host may not be called, as far as that is known before anybody is asked where it is.
    pub fn refusal_unasked(&self, host: &str) -> Option<String> {
        match address_in(host) {
            Some(address) => self.refusal(host, address),
            None => self.refusal_of_name(host),
        }
    }

    /// Why a name may not be called, wherever it leads: names of a cluster that are not this tenant's.
    fn refusal_of_name(&self, host: &str) -> Option<String> {
        if self.whence == Whence::Local {
            return None;
        }
        let name = plain(host);
        if api_server::is_name(&name) {
            return Some(format!("{host} is the API server of the cluster, which is no endpoint"));
        }
        let within = name.strip_suffix(".cluster.local").unwrap_or(&name);
        let of_cluster = within.rsplit_once('.').is_some_and(|(_, last)| last == "svc");
        let is_own = matches!(&self.whence, Whence::Namespace(namespace) if is_service(host, namespace));
        (of_cluster && !is_own).then(|| format!("{host} is no Service of the Job's namespace"))
    }

    /// The name that a host is looked up by.
    ///
    /// The search domains of a pod end in those of its node, in which anybody's machine may have the name that a Service
    /// has not. So one label is looked up as what it is taken for. `{label}.{namespace}.svc` has fewer dots than the
    /// `ndots:5` of a pod, so the domain of the cluster, whatever it is, comes from the search domains.
    fn sought<'h>(&self, host: &'h str) -> Cow<'h, str> {
        match &self.whence {
            Whence::Namespace(namespace) if !plain(host).contains(['.', ':']) => {
                Cow::Owned(format!("{}.{namespace}.svc", plain(host)))
            }
            _ => Cow::Borrowed(host),
        }
    }

    /// Why a host that is at an address may not be called.
    fn refusal(&self, host: &str, address: IpAddr) -> Option<String> {
        let kind = Kind::of(address);
        let api_server = || self.api_server.refusal(address.to_canonical(), kind);
        if let Some(refusal) =
            self.refusal_of_name(host).or_else(|| Some(format!("{host} is at {address}, {}", api_server()?)))
        {
            return Some(refusal);
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
    match plain(host).split_once('.') {
        // An address of IPv6 has no dot either.
        None => !host.contains(':'),
        Some((_, rest)) => rest == format!("{namespace}.svc") || rest == format!("{namespace}.svc.cluster.local"),
    }
}

/// The address that a host is, where it is none of a name; one of IPv6 stands in brackets in a URL.
fn address_in(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// A name as it is compared.
fn plain(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// Looks names up, and gives no address that may not be called. Where one of several may not, none of them is given.
impl Resolve for Reach {
    fn resolve(&self, name: Name) -> Resolving {
        let reach = self.clone();
        Box::pin(async move {
            let host = name.as_str();
            if let Some(refusal) = reach.refusal_of_name(host) {
                return Err(refusal.into());
            }
            let found: Vec<SocketAddr> = tokio::net::lookup_host((reach.sought(host).as_ref(), 0)).await?.collect();
            match found.iter().find_map(|address| reach.refusal(host, address.ip())) {
                Some(refusal) => Err(refusal.into()),
                None => Ok(Box::new(found.into_iter()) as Addrs),
            }
        })
    }
}

#[cfg(test)]
mod tests;
