//! Classifies IP addresses.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The kind of network that an address belongs to. An IPv6 address is public only if its range is known to be public. An IPv4
/// address is public unless its range is known to be of another kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AddressKind {
    /// The public internet.
    Public,
    /// A private network, or the address space that carriers share.
    Private,
    /// This machine.
    Loopback,
    /// Addresses that are never endpoints: link-local addresses, the metadata services of clouds, multicast, the unspecified
    /// address, documentation and benchmark ranges, 6to4, Teredo and other reserved ranges.
    Reserved,
}

impl std::fmt::Display for AddressKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Public => "a public address",
            Self::Private => "a private address",
            Self::Loopback => "a loopback address",
            Self::Reserved => "a link-local, metadata or reserved address",
        })
    }
}

impl AddressKind {
    /// Returns the kind of an address. An IPv4-mapped or NAT64 address has the kind of the IPv4 address in it.
    pub(super) fn classify(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => classify_v4(address),
            IpAddr::V6(address) => classify_v6(address),
        }
    }
}

/// Parses a host as an address. An IPv6 address may be in brackets, as in URLs.
pub(super) fn parse_address(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// The addresses of metadata services of clouds, outside of the link-local ranges.
const METADATA_V4: [Ipv4Addr; 2] = [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16)];
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

fn classify_v4(address: Ipv4Addr) -> AddressKind {
    let [a, b, c, _] = address.octets();
    if METADATA_V4.contains(&address) {
        return AddressKind::Reserved;
    }
    match (a, b, c) {
        (127, _, _) => AddressKind::Loopback,
        (10, _, _) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) => AddressKind::Private,
        // 0.0.0.0/8, link-local, protocol assignments, documentation, 6to4 relays, benchmarks, multicast, reserved.
        (0 | 224..=255, _, _)
        | (169, 254, _)
        | (192, 0, 0 | 2)
        | (192, 88, 99)
        | (198, 18 | 19, _)
        | (198, 51, 100)
        | (203, 0, 113) => AddressKind::Reserved,
        _ => AddressKind::Public,
    }
}

fn classify_v6(address: Ipv6Addr) -> AddressKind {
    if address == METADATA_V6 {
        return AddressKind::Reserved;
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressKind::Loopback,
        // NAT64: a gateway connects to the embedded IPv4 address.
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] => {
            let [.., a, b, c, d] = address.octets();
            classify_v4(Ipv4Addr::new(a, b, c, d))
        }
        [0xfc00..=0xfdff, ..] => AddressKind::Private,
        // Protocol assignments (including Teredo), documentation, 6to4.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => AddressKind::Reserved,
        [0x2000..=0x3fff, ..] => AddressKind::Public,
        _ => AddressKind::Reserved,
    }
}
