//! Opens the listeners of the operator.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use tokio::net::TcpListener;

/// Listens at an address. `[::]` means all addresses of IPv6 and IPv4, or all of IPv4 if the node has no IPv6.
pub async fn bind(address: SocketAddr) -> std::io::Result<TcpListener> {
    TcpListener::bind(addresses(address).as_slice()).await
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
        let listener = bind("[::]:0".parse().unwrap()).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await.unwrap();
    }
}
