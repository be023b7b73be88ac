//! Classifies the hosts of URLs: addresses by their kind of network, and names by their place in the cluster.
//!
//! A worker checks each address when it connects, and the operator builds network policies. Both use the tables of this module, so that
//! they never disagree on what is public.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use strum::Display;
use url::{Host, Url};

/// The kind of network that an address belongs to. An IPv6 address is public only if its range is known to be public. An IPv4
/// address is public unless its range is known to be of another kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Display)]
pub enum AddressKind {
    /// The public internet.
    #[strum(to_string = "a public address")]
    Public,
    /// A private network, or the address space that carriers share.
    #[strum(to_string = "a private address")]
    Private,
    /// This machine.
    #[strum(to_string = "a loopback address")]
    Loopback,
    /// Addresses that are never endpoints: link-local addresses, the metadata services of clouds, multicast, the unspecified
    /// address, documentation and benchmark ranges, 6to4, Teredo and other reserved ranges.
    #[strum(to_string = "a link-local, metadata or reserved address")]
    Reserved,
}

/// A range of addresses: its first address, and the length of its prefix.
pub type Range<A> = (A, u8);

/// The IPv4 ranges that are not public. An address belongs to the first range that contains it.
const NOT_PUBLIC_V4: [(Ipv4Addr, u8, AddressKind); 16] = [
    // The metadata services of clouds, outside of the link-local range.
    (Ipv4Addr::new(100, 100, 100, 200), 32, AddressKind::Reserved),
    (Ipv4Addr::new(168, 63, 129, 16), 32, AddressKind::Reserved),
    (Ipv4Addr::UNSPECIFIED, 8, AddressKind::Reserved),
    (Ipv4Addr::new(10, 0, 0, 0), 8, AddressKind::Private),
    (Ipv4Addr::new(100, 64, 0, 0), 10, AddressKind::Private),
    (Ipv4Addr::new(127, 0, 0, 0), 8, AddressKind::Loopback),
    // Link-local addresses.
    (Ipv4Addr::new(169, 254, 0, 0), 16, AddressKind::Reserved),
    (Ipv4Addr::new(172, 16, 0, 0), 12, AddressKind::Private),
    // Protocol assignments, documentation, 6to4 relays, benchmarks.
    (Ipv4Addr::new(192, 0, 0, 0), 24, AddressKind::Reserved),
    (Ipv4Addr::new(192, 0, 2, 0), 24, AddressKind::Reserved),
    (Ipv4Addr::new(192, 88, 99, 0), 24, AddressKind::Reserved),
    (Ipv4Addr::new(192, 168, 0, 0), 16, AddressKind::Private),
    (Ipv4Addr::new(198, 18, 0, 0), 15, AddressKind::Reserved),
    (Ipv4Addr::new(198, 51, 100, 0), 24, AddressKind::Reserved),
    (Ipv4Addr::new(203, 0, 113, 0), 24, AddressKind::Reserved),
    // Multicast and reserved addresses.
    (Ipv4Addr::new(224, 0, 0, 0), 3, AddressKind::Reserved),
];

/// The range of public IPv6 addresses.
const PUBLIC_V6: Range<Ipv6Addr> = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// The ranges in [`PUBLIC_V6`] that are not public: protocol assignments (including Teredo), documentation, 6to4.
const NOT_PUBLIC_V6: [Range<Ipv6Addr>; 4] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// The range of NAT64: a gateway connects to the IPv4 address in the last four bytes.
const NAT64: Range<Ipv6Addr> = (Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0, 0), 96);

/// The range of private IPv6 addresses.
const PRIVATE_V6: Range<Ipv6Addr> = (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7);

/// The metadata service of a cloud in [`PRIVATE_V6`].
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

impl AddressKind {
    /// Returns the kind of an address. An IPv4-mapped or NAT64 address has the kind of the IPv4 address in it.
    pub fn classify(address: IpAddr) -> Self {
        match reached(address) {
            IpAddr::V4(address) => classify_v4(address),
            IpAddr::V6(address) => classify_v6(address),
        }
    }
}

fn classify_v4(address: Ipv4Addr) -> AddressKind {
    let found = NOT_PUBLIC_V4.iter().find(|(first, length, _)| contains_v4((*first, *length), address));
    found.map_or(AddressKind::Public, |(_, _, kind)| *kind)
}

fn classify_v6(address: Ipv6Addr) -> AddressKind {
    if address == Ipv6Addr::LOCALHOST {
        return AddressKind::Loopback;
    }
    if contains_v6(PRIVATE_V6, address) && address != METADATA_V6 {
        return AddressKind::Private;
    }
    let is_public = contains_v6(PUBLIC_V6, address) && !NOT_PUBLIC_V6.iter().any(|range| contains_v6(*range, address));
    if is_public { AddressKind::Public } else { AddressKind::Reserved }
}

fn contains_v4((first, length): Range<Ipv4Addr>, address: Ipv4Addr) -> bool {
    let host_bits = 32_u32.saturating_sub(length.into());
    let prefix = |address: Ipv4Addr| u64::from(address.to_bits()) >> host_bits;
    prefix(first) == prefix(address)
}

fn contains_v6((first, length): Range<Ipv6Addr>, address: Ipv6Addr) -> bool {
    let host_bits = 128_u32.saturating_sub(length.into());
    let prefix = |address: Ipv6Addr| address.to_bits().checked_shr(host_bits).unwrap_or_default();
    prefix(first) == prefix(address)
}

/// A range of which all addresses are public, except those in `except`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicRange {
    /// The range.
    pub range: Range<IpAddr>,
    /// The ranges in it that are not public.
    pub except: Vec<Range<IpAddr>>,
}

/// Returns ranges that contain all public addresses and no others: of IPv4, of IPv6, and of IPv4 behind a NAT64 gateway.
pub fn public_ranges() -> [PublicRange; 3] {
    let v4 = || NOT_PUBLIC_V4.iter().map(|(first, length, _)| (*first, *length));
    [
        PublicRange {
            range: (IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
            except: v4().map(|(first, length)| (IpAddr::V4(first), length)).collect(),
        },
        PublicRange {
            range: (IpAddr::V6(PUBLIC_V6.0), PUBLIC_V6.1),
            except: NOT_PUBLIC_V6.iter().map(|(first, length)| (IpAddr::V6(*first), *length)).collect(),
        },
        PublicRange { range: (IpAddr::V6(NAT64.0), NAT64.1), except: v4().map(behind_nat64).collect() },
    ]
}

/// Returns the range of a NAT64 gateway that leads to a range of IPv4.
pub fn behind_nat64((first, length): Range<Ipv4Addr>) -> Range<IpAddr> {
    let (prefix, bits) = NAT64;
    (IpAddr::V6(Ipv6Addr::from_bits(prefix.to_bits() | u128::from(first.to_bits()))), length.saturating_add(bits))
}

/// Returns the address that a connection reaches: the IPv4 address in an IPv4-mapped or NAT64 address, or else the address itself.
pub fn reached(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) if contains_v6(NAT64, address) => {
            let [.., a, b, c, d] = address.octets();
            IpAddr::V4(Ipv4Addr::new(a, b, c, d))
        }
        other => other,
    }
}

/// Parses a host as an address. An IPv6 address may be in brackets, as in URLs.
pub fn parse_address(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// Returns the host and the port of an http or https URL. An IPv6 address has no brackets.
pub fn host_and_port(url: &str) -> Option<(String, u16)> {
    let url = Url::parse(url).ok()?;
    let host = match url.host()? {
        Host::Domain(name) => normalize(name),
        Host::Ipv4(address) => address.to_string(),
        Host::Ipv6(address) => IpAddr::V6(address).to_canonical().to_string(),
    };
    Some((host, url.port_or_known_default()?))
}

/// The place of a name, as the resolver of a pod finds it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A name that every cluster gives its API server.
    ApiServer,
    /// A Service of the pod's namespace.
    OwnService,
    /// Another name of the cluster, such as a Service of another namespace.
    OtherInCluster,
    /// Any other name. It may have a public or a private address.
    Elsewhere,
}

impl Place {
    /// Returns the place of a name for a pod in a namespace. Without a namespace, no Service is the pod's own.
    pub fn of(host: &str, namespace: Option<&str>) -> Self {
        let name = normalize(host);
        if is_api_server_name(&name) {
            return Self::ApiServer;
        }
        if namespace.is_some_and(|namespace| is_service(&name, namespace)) {
            return Self::OwnService;
        }
        let without_domain = name.strip_suffix(".cluster.local").unwrap_or(&name);
        let is_in_cluster = without_domain.rsplit_once('.').is_some_and(|(_, last)| last == "svc");
        if is_in_cluster { Self::OtherInCluster } else { Self::Elsewhere }
    }
}

/// Returns whether a host is the name of a Service in a namespace. A name that can exist in the public DNS does not count: `shop.dev`
/// is a public domain, even if there is a namespace `dev`.
pub fn is_service(host: &str, namespace: &str) -> bool {
    match normalize(host).split_once('.') {
        // A single label is a Service. An IPv6 address has no dot either.
        None => !host.contains(':'),
        Some((_, rest)) => rest == format!("{namespace}.svc") || rest == format!("{namespace}.svc.cluster.local"),
    }
}

/// Returns the first label of a name, which is the name of the Service if it is one.
pub fn first_label(host: &str) -> String {
    normalize(host).split('.').next().unwrap_or_default().to_owned()
}

/// Returns whether two hosts are the same name or the same address.
pub fn is_same_host(one: &str, other: &str) -> bool {
    match (parse_address(one), parse_address(other)) {
        (Some(one), Some(other)) => one.to_canonical() == other.to_canonical(),
        (None, None) => normalize(one) == normalize(other),
        _ => false,
    }
}

/// Returns a name in the form in which names are compared: lower case, without the final dot.
pub fn normalize(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// Returns whether a name, in lower case, is one that every cluster gives its API server.
fn is_api_server_name(name: &str) -> bool {
    matches!(
        name,
        "kubernetes" | "kubernetes.default" | "kubernetes.default.svc" | "kubernetes.default.svc.cluster.local"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("https://api.example.com/v1", Some(("api.example.com", 443)))]
    #[case("http://Shop.:8080", Some(("shop", 8080)))]
    #[case("http://[::ffff:10.0.0.1]/v1", Some(("10.0.0.1", 80)))]
    #[case("http://2130706433/", Some(("127.0.0.1", 80)))]
    #[case("mailto:a@b", None)]
    #[case("no url", None)]
    fn the_host_and_port_of_a_url(#[case] url: &str, #[case] expected: Option<(&str, u16)>) {
        assert_eq!(host_and_port(url), expected.map(|(host, port)| (host.to_owned(), port)));
    }

    #[rstest]
    #[case("kubernetes", Place::ApiServer)]
    #[case("Kubernetes.default.svc.", Place::ApiServer)]
    #[case("shop", Place::OwnService)]
    #[case("shop.acme.svc.cluster.local", Place::OwnService)]
    #[case("shop.other.svc", Place::OtherInCluster)]
    #[case("0.shop.acme.svc", Place::OtherInCluster)]
    #[case("shop.acme", Place::Elsewhere)]
    #[case("svc.example.com", Place::Elsewhere)]
    fn a_name_has_a_place(#[case] host: &str, #[case] expected: Place) {
        assert_eq!(Place::of(host, Some("acme")), expected);
    }

    #[test]
    fn hosts_are_compared_as_names_or_addresses() {
        assert!(is_same_host("[FD12::1]", "fd12:0::1") && is_same_host("A.example.", "a.EXAMPLE"));
        assert!(!is_same_host("10.0.0.1", "10.0.0.2") && !is_same_host("10.0.0.1", "ten"));
    }

    fn contains((first, length): Range<IpAddr>, address: IpAddr) -> bool {
        match (first, address) {
            (IpAddr::V4(first), IpAddr::V4(address)) => contains_v4((first, length), address),
            (IpAddr::V6(first), IpAddr::V6(address)) => contains_v6((first, length), address),
            _ => false,
        }
    }

    fn is_in_public_ranges(address: IpAddr) -> bool {
        let is_in = |public: &PublicRange| {
            contains(public.range, address) && !public.except.iter().any(|except| contains(*except, address))
        };
        public_ranges().iter().any(is_in)
    }

    /// The first and the last address of each range, and their neighbours.
    #[test]
    fn the_public_ranges_contain_exactly_the_public_addresses() {
        let mut checked = 0;
        for public in public_ranges() {
            for (first, length) in public.except.into_iter().chain([public.range]) {
                let addresses: Vec<IpAddr> = match first {
                    IpAddr::V4(first) => {
                        let last = first.to_bits() | u32::MAX.checked_shr(length.into()).unwrap_or_default();
                        let (before, after) = (first.to_bits().saturating_sub(1), last.saturating_add(1));
                        [before, first.to_bits(), last, after].map(|bits| Ipv4Addr::from_bits(bits).into()).into()
                    }
                    IpAddr::V6(first) => {
                        let last = first.to_bits() | u128::MAX.checked_shr(length.into()).unwrap_or_default();
                        let (before, after) = (first.to_bits().saturating_sub(1), last.saturating_add(1));
                        [before, first.to_bits(), last, after].map(|bits| Ipv6Addr::from_bits(bits).into()).into()
                    }
                };
                for address in addresses {
                    let is_public = AddressKind::classify(address) == AddressKind::Public;
                    assert_eq!(is_in_public_ranges(address), is_public, "{address}");
                    checked += 1;
                }
            }
        }
        assert!(checked > 100);
    }
}
