//! Limits the number of connections, in total and from one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The maximum number of connections from one address. A worker needs one. The workers of a node may share an address, if the
/// cluster's network hides those of pods.
const MAX_CONNECTIONS_PER_ADDRESS: usize = 256;

/// The open connections, by address.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<HashMap<IpAddr, OfAddress>>);

/// The connections of one address.
#[derive(Debug, Default)]
struct OfAddress {
    open: usize,
    /// True if a connection was refused since the address had no open one.
    has_refused: bool,
}

/// A connection was refused, because its address has too many. Holds whether it is the first one.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooMany {
    /// True if no other connection of the address was refused since the address had no open one.
    pub(super) is_first: bool,
}

/// An open connection. It counts until it is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    connections: Arc<Connections>,
    address: IpAddr,
}

impl Connections {
    /// Counts a connection from this address, unless too many are open.
    pub(super) fn open(self: &Arc<Self>, address: IpAddr) -> Result<Connection, TooMany> {
        let mut addresses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let of_address = addresses.entry(address).or_default();
        if of_address.open >= MAX_CONNECTIONS_PER_ADDRESS {
            return Err(TooMany { is_first: !std::mem::replace(&mut of_address.has_refused, true) });
        }
        of_address.open += 1;
        Ok(Connection { connections: self.clone(), address })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut addresses = self.connections.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(of_address) = addresses.get_mut(&self.address) {
            of_address.open -= 1;
            if of_address.open == 0 {
                addresses.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_connections_of_each_address_are_limited_and_counted_until_they_are_dropped() {
        let connections = Arc::new(Connections::default());
        let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        let mut open: Vec<_> = (0..MAX_CONNECTIONS_PER_ADDRESS).map(|_| connections.open(one).unwrap()).collect();
        for is_first in [true, false] {
            assert_eq!(connections.open(one).unwrap_err(), TooMany { is_first });
        }
        assert!(connections.open(other).is_ok());
        open.pop();
        assert!(connections.open(one).is_ok());
        open.clear();
        assert!(connections.0.lock().unwrap().is_empty(), "an address without connections is forgotten");
    }
}
