//! Limits the number of connections, in total and from one address.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

/// The maximum number of connections from one address. A worker needs one. The workers of a node may share an address, if the
/// cluster's network hides those of pods.
const MAX_CONNECTIONS_PER_ADDRESS: usize = 256;

/// The open connections, by address.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<HashMap<IpAddr, usize>>);

/// An open connection. It counts until it is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    connections: Arc<Connections>,
    address: IpAddr,
}

impl Connections {
    /// Counts a connection from this address; none if too many are open.
    pub(super) fn open(self: &Arc<Self>, address: IpAddr) -> Option<Connection> {
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = open.entry(address).or_default();
        if *count >= MAX_CONNECTIONS_PER_ADDRESS {
            return None;
        }
        *count += 1;
        Some(Connection { connections: self.clone(), address })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut open = self.connections.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.address);
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
        let mut open: Vec<_> = std::iter::from_fn(|| connections.open(one)).collect();
        assert_eq!(open.len(), MAX_CONNECTIONS_PER_ADDRESS);
        assert!(connections.open(other).is_some());
        open.pop();
        assert!(connections.open(one).is_some());
        open.clear();
        assert!(connections.0.lock().unwrap().is_empty(), "an address without connections is forgotten");
    }
}
