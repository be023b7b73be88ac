//! What an address is of.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is of. Whatever is not known to be public is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The public internet.
    Public,
    /// A network of somebody's own, shared carrier space among them.
    Private,
    /// This machine.
    Loopback,
    /// What has to do with the machine or its network: link-local addresses, where clouds tell their secrets (metadata),
    /// multicast, unspecified, reserved, and forms that hide another address.
    Reserved,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Public => "a public address",
            Self::Private => "a private address",
            Self::Loopback => "a loopback address",
            Self::Reserved => "a link-local, metadata or reserved address",
        })
    }
}

impl Kind {
    /// The kind of an address. One that holds another is of that one's kind.
    pub(super) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => of_v4(address),
            IpAddr::V6(address) => of_v6(address),
        }
    }
}

/// Addresses where clouds tell a machine's secrets, beyond the link-local ones.
const METADATA_V4: [Ipv4Addr; 2] = [Ipv4Addr::new(100, 100, 100, 200), Ipv4Addr::new(168, 63, 129, 16)];
const METADATA_V6: Ipv6Addr = Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254);

fn of_v4(address: Ipv4Addr) -> Kind {
    let [a, b, c, _] = address.octets();
    if METADATA_V4.contains(&address) {
        return Kind::Reserved;
    }
    match (a, b, c) {
        (127, _, _) => Kind::Loopback,
        (10, _, _) | (172, 16..=31, _) | (192, 168, _) | (100, 64..=127, _) => Kind::Private,
        // This network, link-local, protocols, documentation, 6to4 relays, benchmarks, multicast and what is left.
        (0 | 224..=255, _, _)
        | (169, 254, _)
        | (192, 0, 0 | 2)
        | (192, 88, 99)
        | (198, 18 | 19, _)
        | (198, 51, 100)
        | (203, 0, 113) => Kind::Reserved,
        _ => Kind::Public,
    }
}

fn of_v6(address: Ipv6Addr) -> Kind {
    if address == METADATA_V6 {
        return Kind::Reserved;
    }
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 1] => Kind::Loopback,
        // NAT64: a gateway calls the IPv4 address in it.
        [0x64, 0xff9b, 0, 0, 0, 0, _, _] => {
            let [.., a, b, c, d] = address.octets();
            of_v4(Ipv4Addr::new(a, b, c, d))
        }
        [0xfc00..=0xfdff, ..] => Kind::Private,
        // Protocols (Teredo among them), documentation, 6to4.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => Kind::Reserved,
        [0x2000..=0x3fff, ..] => Kind::Public,
        _ => Kind::Reserved,
    }
}
