//! Opens the listeners of the operator.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::net::{TcpListener, TcpSocket};

/// The number of connections that can wait until they are accepted. If it is exceeded, clients try again after a second.
const BACKLOG: u32 = 4096;

/// Listens at an address. `[::]` means all addresses of IPv6 and IPv4, or all of IPv4 if the node has no IPv6.
pub fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    let mut result = Err(std::io::ErrorKind::AddrNotAvailable.into());
    for address in addresses(address) {
        result = listen(address);
        if result.is_ok() {
            break;
        }
    }
    result
}

fn listen(address: SocketAddr) -> std::io::Result<TcpListener> {
    let socket = if address.is_ipv6() { TcpSocket::new_v6()? } else { TcpSocket::new_v4()? };
    // A restarted operator can use the port at once.
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// Returns the addresses to try, in their order.
fn addresses(address: SocketAddr) -> Vec<SocketAddr> {
    let of_ipv4 = SocketAddr::from((Ipv4Addr::UNSPECIFIED, address.port()));
    [address].into_iter().chain((address.ip() == Ipv6Addr::UNSPECIFIED).then_some(of_ipv4)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use tokio::net::TcpStream;

    #[rstest]
    #[case("[::]:8443", &["[::]:8443", "0.0.0.0:8443"])]
    #[case("[::1]:8443", &["[::1]:8443"])]
    #[case("0.0.0.0:8443", &["0.0.0.0:8443"])]
    fn a_node_without_ipv6_listens_at_all_addresses_of_ipv4(#[case] address: &str, #[case] expected: &[&str]) {
        let found: Vec<String> = addresses(address.parse().unwrap()).iter().map(SocketAddr::to_string).collect();
        assert_eq!(found, expected);
    }

    #[tokio::test]
    async fn all_addresses_of_ipv6_include_those_of_ipv4() {
        let listener = bind("[::]:0".parse().unwrap()).unwrap();
        let port = listener.local_addr().unwrap().port();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    }
}
