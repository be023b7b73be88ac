//! Limits the number of connections, and shares it between the addresses from which they come.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio_util::sync::CancellationToken;

/// The open connections, by address.
///
/// No address has a limit of its own, because the workers of a node may share an address, if the cluster's network hides those of pods.
/// If there are as many connections as allowed, the address with the most of them yields its oldest one to an address with fewer. So an
/// address without a connection always gets one, and more workers than connections take turns.
#[derive(Debug)]
pub(super) struct Connections {
    max: usize,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    total: usize,
    /// The number of connections that were ever open.
    opened: u64,
    addresses: HashMap<IpAddr, OfAddress>,
}

/// The connections of one address.
#[derive(Debug, Default)]
struct OfAddress {
    /// How each open connection is closed. Later connections have higher numbers.
    closers: BTreeMap<u64, CancellationToken>,
    /// True if a connection was refused or closed since the address had no open one.
    is_limited: bool,
}

/// An open connection. It counts until it is dropped or has yielded.
#[derive(Debug)]
pub(super) struct Connection {
    connections: Arc<Connections>,
    address: IpAddr,
    number: u64,
    closer: CancellationToken,
}

impl Connections {
    /// Allows this number of connections.
    pub(super) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, open: Mutex::default() })
    }

    /// Counts a connection from this address. Returns `None` if the maximum is reached and no other address has to yield.
    pub(super) fn open(self: &Arc<Self>, address: IpAddr) -> Option<Connection> {
        let mut open = self.lock();
        if open.total >= self.max && !open.make_room(address) {
            return None;
        }
        open.total += 1;
        open.opened += 1;
        let (number, closer) = (open.opened, CancellationToken::new());
        open.addresses.entry(address).or_default().closers.insert(number, closer.clone());
        Some(Connection { connections: self.clone(), address, number, closer })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Open {
    /// Closes the oldest connection of the address with the most, if that is fair to both. Returns whether it did.
    fn make_room(&mut self, newcomer: IpAddr) -> bool {
        let own = self.addresses.get(&newcomer).map_or(0, |of_address| of_address.closers.len());
        let size = |of_address: &OfAddress| {
            (of_address.closers.len(), Reverse(of_address.closers.keys().next().copied().unwrap_or_default()))
        };
        let Some((&largest, of_largest)) = self.addresses.iter_mut().max_by_key(|(_, of_address)| size(of_address))
        else {
            return false;
        };
        // Two addresses with almost the same number would take the connections from each other again and again.
        let yields = own == 0 || of_largest.closers.len() > own + 1;
        if yields && let Some((_, closer)) = of_largest.closers.pop_first() {
            // An address with one connection only takes turns.
            if !of_largest.closers.is_empty() {
                of_largest.warn_once(largest);
            }
            closer.cancel();
            self.total -= 1;
            self.forget_if_unused(largest);
            return true;
        }
        if let Some(of_address) = self.addresses.get_mut(&newcomer) {
            of_address.warn_once(newcomer);
        }
        false
    }

    fn forget_if_unused(&mut self, address: IpAddr) {
        if self.addresses.get(&address).is_some_and(|of_address| of_address.closers.is_empty()) {
            self.addresses.remove(&address);
        }
    }
}

impl OfAddress {
    fn warn_once(&mut self, address: IpAddr) {
        if !std::mem::replace(&mut self.is_limited, true) {
            tracing::warn!(%address, "connections are refused or closed, because their address has the most of all");
        }
    }
}

impl Connection {
    /// Waits until the connection has to close, because its address yields it to another one.
    pub(super) async fn yielded(&self) {
        self.closer.cancelled().await;
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut open = self.connections.lock();
        let of_address = open.addresses.get_mut(&self.address);
        if of_address.is_some_and(|of_address| of_address.closers.remove(&self.number).is_some()) {
            open.total -= 1;
            open.forget_if_unused(self.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, number])
    }

    fn has_yielded(connection: &Connection) -> bool {
        connection.closer.is_cancelled()
    }

    #[test]
    fn the_address_with_the_most_connections_yields_the_oldest_to_one_with_fewer() {
        let connections = Connections::new(8);
        let hostile: Vec<_> = (0..8).map(|_| connections.open(address(1)).unwrap()).collect();
        assert!(connections.open(address(1)).is_none(), "it has the most");
        let honest: Vec<_> = (0..4).map_while(|_| connections.open(address(2))).collect();
        assert_eq!(honest.len(), 4);
        assert_eq!(
            hostile.iter().map(has_yielded).collect::<Vec<_>>(),
            [true, true, true, true, false, false, false, false]
        );
        assert!(connections.open(address(2)).is_none(), "both have the same number");
        assert!(!honest.iter().any(has_yielded));
        assert!(connections.lock().addresses[&address(1)].is_limited);
    }

    #[test]
    fn an_address_without_a_connection_always_gets_one() {
        let connections = Connections::new(8);
        let first: Vec<_> = (0..8).map(|number| connections.open(address(number)).unwrap()).collect();
        let _next: Vec<_> = (8..12).map(|number| connections.open(address(number)).unwrap()).collect();
        assert_eq!(first.iter().filter(|connection| has_yielded(connection)).count(), 4, "the oldest yield");
        assert!(first.iter().take(4).all(has_yielded));
    }

    #[test]
    fn connections_count_until_they_are_dropped_or_yield() {
        let connections = Connections::new(2);
        let mut open: Vec<_> = (0..2).map(|_| connections.open(address(1)).unwrap()).collect();
        open.extend(connections.open(address(2)));
        open.remove(0);
        assert!(connections.open(address(1)).is_none(), "a dropped connection that has yielded is not counted twice");
        open.pop();
        open.extend(connections.open(address(1)));
        assert_eq!((open.len(), connections.lock().total), (2, 2));
        open.clear();
        assert_eq!(connections.lock().total, 0);
        assert!(connections.lock().addresses.is_empty(), "an address without connections is forgotten");
    }
}
