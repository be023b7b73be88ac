//! Decides whether a tenant may connect to a host, and builds the rule of a network policy that allows it.

use super::destination::Destination;
use crate::settings::{NetworkSettings, Settings};
use bloomery_crds::address::{self, AddressKind, Place, PublicRange};
use ipnet::IpNet;
use k8s_openapi::api::core::v1::{Service, ServicePort};
use k8s_openapi::api::networking::v1::{IPBlock, NetworkPolicyEgressRule, NetworkPolicyPeer, NetworkPolicyPort};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::net::IpAddr;
use std::sync::Arc;

/// Where the remedies are described.
const HOW_TO: &str = "docs/how-to/network.md";

/// What the pods of a tenant may connect to.
#[derive(Clone, Copy)]
pub struct Egress<'a> {
    network: &'a NetworkSettings,
    /// More ranges that tenants may connect to.
    ranges: &'a [IpNet],
    namespace: &'a str,
    /// Finds a Service of the namespace.
    services: &'a dyn Fn(&str) -> Option<Arc<Service>>,
}

/// The reason why there is no rule for a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Obstacle {
    /// The tenant may not connect to it. Holds the reason, as a clause that begins with the host.
    NotAllowed(String),
    /// A Service of the tenant that does not exist yet, or does not have the port. Holds the reason, as a clause.
    NoService(String),
}

impl<'a> Egress<'a> {
    /// Returns what the pods of a namespace may connect to.
    pub fn new(settings: &'a Settings, namespace: &'a str, services: &'a dyn Fn(&str) -> Option<Arc<Service>>) -> Self {
        Self { network: &settings.network, ranges: &settings.worker.endpoint_ranges, namespace, services }
    }

    /// Returns whether the operator writes network policies.
    pub fn has_policies(&self) -> bool {
        self.network.policies
    }

    /// Returns the rule that allows a destination.
    ///
    /// # Errors
    /// If the tenant may not connect to it, or if it is a Service that cannot be used yet.
    pub fn rule(&self, destination: &Destination) -> Result<NetworkPolicyEgressRule, Obstacle> {
        let Destination { host, port } = destination;
        if let Some(shared) = self.network.shared.iter().find(|shared| address::is_same_host(&shared.host, host)) {
            let peers: Vec<_> = shared.peers.iter().filter_map(|peer| self.without_denied(peer)).collect();
            let ports = if shared.ports.is_empty() { vec![tcp(*port)] } else { shared.ports.clone() };
            return unless_empty(host, peers, ports);
        }
        if let Some(address) = address::parse_address(host) {
            return self.address_rule(host, address.to_canonical(), *port);
        }
        match Place::of(host, Some(self.namespace)) {
            Place::ApiServer => Err(not_allowed(&format!("{host} is the API server of the cluster"))),
            Place::OtherInCluster => Err(not_allowed(&format!(
                "{host} is not a Service of this namespace, and the chart's value network.shared does not list it"
            ))),
            Place::OwnService => self.service_rule(&address::first_label(host), *port),
            Place::Elsewhere => unless_empty(host, self.public_peers(), vec![tcp(*port)]),
        }
    }

    /// Returns the reason why a tenant may not connect to a destination; none if it may, or if that cannot be decided yet.
    pub fn refusal(&self, destination: &Destination) -> Option<String> {
        match self.rule(destination) {
            Err(Obstacle::NotAllowed(why)) => Some(why),
            Ok(_) | Err(Obstacle::NoService(_)) => None,
        }
    }

    fn address_rule(&self, host: &str, address: IpAddr, port: u16) -> Result<NetworkPolicyEgressRule, Obstacle> {
        if self.denied().any(|denied| denied.contains(&address)) {
            return Err(not_allowed(&format!("{host} is in a range that the chart's value network.deny refuses")));
        }
        let kind = AddressKind::classify(address);
        if kind != AddressKind::Public && !self.ranges.iter().any(|range| range.contains(&address)) {
            return Err(not_allowed(&format!(
                "{host} is {kind}, and neither worker.endpointRanges nor network.shared of the chart lists it"
            )));
        }
        unless_empty(host, vec![block(IpNet::from(address), &[])], vec![tcp(port)])
    }

    fn service_rule(&self, name: &str, port: u16) -> Result<NetworkPolicyEgressRule, Obstacle> {
        let missing = Obstacle::NoService;
        let service = (self.services)(name)
            .ok_or_else(|| missing(format!("the Service {name} does not exist in this namespace")))?;
        let spec = service.spec.as_ref();
        if spec.and_then(|spec| spec.type_.as_deref()) == Some("ExternalName") {
            return Err(not_allowed(&format!(
                "the Service {name} is of type ExternalName, which leads out of the namespace: name a Service with pods"
            )));
        }
        let ports = spec.and_then(|spec| spec.ports.as_ref()).into_iter().flatten();
        let mut tcp_ports = ports.filter(|port| port.protocol.as_deref().unwrap_or("TCP") == "TCP");
        let is_headless = spec.and_then(|spec| spec.cluster_ip.as_deref()) == Some("None");
        // A headless Service resolves to its pods, whose port is that of the URL.
        let port = if is_headless {
            IntOrString::Int(port.into())
        } else {
            let found = tcp_ports.find(|found| found.port == i32::from(port));
            pod_port(found.ok_or_else(|| missing(format!("the Service {name} has no TCP port {port}")))?)
        };
        let selector = spec.and_then(|spec| spec.selector.clone()).filter(|selector| !selector.is_empty());
        let Some(selector) = selector else {
            return if self.network.policies {
                Err(not_allowed(&format!(
                    "the Service {name} has no selector, so no network policy can allow its pods"
                )))
            } else {
                Err(missing(format!("the Service {name} has no selector")))
            };
        };
        let peer = NetworkPolicyPeer {
            pod_selector: Some(LabelSelector { match_labels: Some(selector), ..LabelSelector::default() }),
            ..NetworkPolicyPeer::default()
        };
        Ok(rule(vec![peer], vec![NetworkPolicyPort { port: Some(port), ..tcp(0) }]))
    }

    /// Returns peers that contain all public addresses and the ranges of the chart, without what nobody may connect to.
    fn public_peers(&self) -> Vec<NetworkPolicyPeer> {
        let public = address::public_ranges().into_iter().filter_map(|PublicRange { range, except }| {
            let except: Vec<IpNet> = except.into_iter().filter_map(net).collect();
            Some((net(range)?, except))
        });
        let listed = self.ranges.iter().map(|range| (*range, Vec::new()));
        public.chain(listed).filter_map(|(range, except)| self.block_without_denied(range, except)).collect()
    }

    /// Returns a peer of the chart without what nobody may connect to; none if nothing is left.
    fn without_denied(&self, peer: &NetworkPolicyPeer) -> Option<NetworkPolicyPeer> {
        let Some(IPBlock { cidr, except }) = &peer.ip_block else { return Some(peer.clone()) };
        // The chart's schema refuses other texts.
        let range: IpNet = cidr.parse().ok()?;
        let except: Vec<IpNet> = except.iter().flatten().filter_map(|except| except.parse().ok()).collect();
        self.block_without_denied(range, except)
    }

    fn block_without_denied(&self, range: IpNet, mut except: Vec<IpNet>) -> Option<NetworkPolicyPeer> {
        let range = range.trunc();
        if self.denied().any(|denied| denied.contains(&range)) {
            return None;
        }
        except.extend(self.denied().filter(|denied| range.contains(denied)));
        Some(block(range, &except))
    }

    /// Returns the ranges that nobody may connect to, also behind a NAT64 gateway.
    fn denied(&self) -> impl Iterator<Item = IpNet> {
        self.network.deny.iter().flat_map(|denied| {
            let behind_nat64 = match denied {
                IpNet::V4(range) => net(address::behind_nat64((range.network(), range.prefix_len()))),
                IpNet::V6(_) => None,
            };
            [Some(*denied), behind_nat64].into_iter().flatten()
        })
    }
}

/// Returns a rule. Without peers, it would allow all of them.
fn unless_empty(
    host: &str,
    peers: Vec<NetworkPolicyPeer>,
    ports: Vec<NetworkPolicyPort>,
) -> Result<NetworkPolicyEgressRule, Obstacle> {
    if peers.is_empty() {
        return Err(not_allowed(&format!("the chart's value network.deny refuses all addresses of {host}")));
    }
    Ok(rule(peers, ports))
}

fn not_allowed(why: &str) -> Obstacle {
    Obstacle::NotAllowed(format!("{why} ({HOW_TO})"))
}

/// Returns the port of the pods behind a port of a Service.
fn pod_port(port: &ServicePort) -> IntOrString {
    match &port.target_port {
        Some(IntOrString::Int(0)) | None => IntOrString::Int(port.port),
        Some(target) => target.clone(),
    }
}

/// Returns a peer for a range. Ranges that others contain are left out of `except`.
fn block(range: IpNet, except: &[IpNet]) -> NetworkPolicyPeer {
    let mut except: Vec<IpNet> = except.iter().map(IpNet::trunc).collect();
    except.sort();
    except.dedup();
    let is_covered = |one: &IpNet| except.iter().any(|other| other != one && other.contains(one));
    let except: Vec<String> = except.iter().filter(|one| !is_covered(one)).map(ToString::to_string).collect();
    NetworkPolicyPeer {
        ip_block: Some(IPBlock { cidr: range.to_string(), except: Some(except).filter(|except| !except.is_empty()) }),
        ..NetworkPolicyPeer::default()
    }
}

fn net((first, length): address::Range<IpAddr>) -> Option<IpNet> {
    IpNet::new(first, length).ok()
}

pub(super) fn tcp(port: u16) -> NetworkPolicyPort {
    NetworkPolicyPort {
        port: Some(IntOrString::Int(port.into())),
        protocol: Some("TCP".to_owned()),
        ..NetworkPolicyPort::default()
    }
}

pub(super) fn rule(peers: Vec<NetworkPolicyPeer>, ports: Vec<NetworkPolicyPort>) -> NetworkPolicyEgressRule {
    NetworkPolicyEgressRule { to: Some(peers), ports: Some(ports) }
}
