use super::*;
use crate::{ClientOptions, IDLE_TIMEOUT, client, install_tls_provider, root_cause};
use proptest::prelude::*;
use rstest::rstest;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, TcpListener};
use std::sync::{Arc, Mutex};

fn kind(address: &str) -> AddressKind {
    AddressKind::classify(address.parse().unwrap())
}

#[rstest]
#[case::public(&["1.1.1.1", "172.15.0.1", "172.32.0.1", "100.63.0.1", "100.128.0.1", "192.0.1.1", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"], AddressKind::Public)]
#[case::private(&["10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1", "100.64.0.1", "fd12::1", "fc00::1", "::ffff:10.0.0.1", "64:ff9b::a00:1"], AddressKind::Private)]
#[case::loopback(&["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"], AddressKind::Loopback)]
#[case::link_local(&["169.254.169.254", "fe80::1", "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe"], AddressKind::Reserved)]
#[case::metadata(&["100.100.100.200", "168.63.129.16", "fd00:ec2::254"], AddressKind::Reserved)]
#[case::no_single_host(&["0.0.0.0", "0.1.2.3", "224.0.0.1", "239.255.255.250", "240.0.0.1", "255.255.255.255", "::", "ff02::1"], AddressKind::Reserved)]
#[case::special_ranges(&["192.0.0.170", "192.0.2.1", "198.18.0.1", "198.51.100.7", "203.0.113.7", "192.88.99.1", "2001:db8::1", "3fff::1", "100::1", "fec0::1"], AddressKind::Reserved)]
#[case::with_another_address_inside(&["2002:a00:1::", "2001:0:4136:e378::", "64:ff9b:1::a00:1", "::10.0.0.1", "::127.0.0.1"], AddressKind::Reserved)]
fn an_address_is_classified(#[case] addresses: &[&str], #[case] expected: AddressKind) {
    for address in addresses {
        assert_eq!(kind(address), expected, "{address}");
    }
}

fn ranges(ranges: &[&str]) -> Vec<IpNet> {
    ranges.iter().map(|range| range.parse().unwrap()).collect()
}

fn allows(policy: &AddressPolicy, host: &str, address: &str) -> bool {
    policy.refusal(host, address.parse().unwrap()).is_none()
}

#[test]
fn a_pod_calls_public_addresses_and_services_of_its_namespace() {
    let policy = AddressPolicy::for_pod("acme", Vec::new());
    assert!(allows(&policy, "api.example.com", "1.1.1.1") && !allows(&policy, "api.example.com", "10.0.0.1"));
    for service in ["shop", "shop.acme.svc", "SHOP.acme.svc.", "shop.acme.svc.cluster.local"] {
        assert!(allows(&policy, service, "10.96.0.7"), "{service}");
        // A Service cannot lead to the node itself.
        for address in ["127.0.0.1", "169.254.169.254", "fe80::1"] {
            assert!(!allows(&policy, service, address), "{service} {address}");
        }
    }
    for other in ["shop.acme", "shop.acme.svc.evil.com", "10.96.0.7"] {
        assert!(!allows(&policy, other, "10.96.0.7"), "{other}");
    }
    let refusal = policy.refusal("api.example.com", "10.0.0.1".parse().unwrap()).unwrap();
    assert!(refusal.starts_with("api.example.com is at 10.0.0.1, a private address. Endpoints may be at"), "{refusal}");
}

#[test]
fn a_pod_also_calls_addresses_in_listed_ranges() {
    let policy = AddressPolicy::for_pod("acme", ranges(&["10.1.0.0/16", "127.0.0.1/32", "fd12::/16"]));
    for address in ["10.1.2.3", "127.0.0.1", "fd12::7", "::ffff:10.1.2.3"] {
        assert!(allows(&policy, "x.example", address), "{address}");
    }
    for address in ["10.2.0.1", "127.0.0.2", "fd13::7", "169.254.169.254"] {
        assert!(!allows(&policy, "x.example", address), "{address}");
    }
    assert!(!allows(&AddressPolicy::default(), "shop", "10.1.2.3"));
}

#[test]
fn a_pod_calls_shared_hosts_at_private_addresses_only() {
    let shared = vec!["gateway.ai.svc".to_owned(), "llm.corp.example".to_owned(), "fd12::7".to_owned()];
    let policy = AddressPolicy::for_pod("acme", Vec::new()).with_shared(shared);
    for (host, address) in
        [("Gateway.ai.svc.", "10.96.0.9"), ("llm.corp.example", "10.0.0.1"), ("[fd12::7]", "fd12::7")]
    {
        assert!(allows(&policy, host, address) && policy.refusal_before_lookup(host).is_none(), "{host}");
    }
    for (host, address) in [
        ("gateway.ai.svc", "169.254.169.254"),
        ("gateway.ai.svc", "127.0.0.1"),
        ("other.ai.svc", "10.96.0.9"),
        ("fd12::8", "fd12::8"),
    ] {
        assert!(!allows(&policy, host, address), "{host} {address}");
    }
}

#[test]
fn denied_ranges_win_over_everything() {
    let policy = AddressPolicy::for_pod("acme", ranges(&["10.0.0.0/8"]))
        .with_shared(vec!["gateway.ai.svc".to_owned()])
        .without_ranges(ranges(&["10.1.0.0/16", "34.1.2.3/32"]));
    for host in ["x.example", "shop", "gateway.ai.svc", "10.1.0.7"] {
        assert!(!allows(&policy, host, "10.1.0.7") && !allows(&policy, host, "::ffff:10.1.0.7"), "{host}");
    }
    assert!(!allows(&policy, "api.example.com", "64:ff9b::2201:203"), "34.1.2.3 behind a NAT64 gateway");
    assert!(!allows(&policy, "api.example.com", "34.1.2.3") && allows(&policy, "api.example.com", "34.1.2.4"));
    assert!(allows(&policy, "shop", "10.2.0.7"));
    let refusal = policy.refusal("shop", "10.1.0.7".parse().unwrap()).unwrap();
    assert_eq!(refusal, "shop is at 10.1.0.7, which the chart's value network.deny refuses");
}

#[test]
fn the_api_server_is_refused_by_every_name_and_range() {
    let policy = AddressPolicy::for_pod("default", ranges(&["10.0.0.0/8"]));
    let without_api_server = policy.clone().without_api_server(ApiServer::At(vec!["10.96.0.1".parse().unwrap()]));
    for host in ["10.96.0.1", "alias.default.svc"] {
        assert!(allows(&policy, host, "10.96.0.1") && !allows(&without_api_server, host, "10.96.0.1"), "{host}");
        assert!(
            !allows(&without_api_server, host, "::ffff:10.96.0.1") && allows(&without_api_server, host, "10.96.0.2"),
            "{host}"
        );
    }
    for host in ["kubernetes", "Kubernetes.Default.", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"]
    {
        assert!(
            policy
                .refusal_before_lookup(host)
                .is_some_and(|reason| reason.contains("which is not allowed as an endpoint")),
            "{host}"
        );
        assert!(
            !allows(&policy, host, "1.1.1.1")
                && AddressPolicy::for_local_machine().refusal_before_lookup(host).is_none(),
            "{host}"
        );
    }
    let unknown = policy.without_api_server(ApiServer::Unknown);
    assert!(!allows(&unknown, "shop.default.svc", "10.96.0.7") && allows(&unknown, "api.example.com", "1.1.1.1"));
}

#[tokio::test]
async fn the_api_server_is_given_by_address_or_looked_up() {
    let resolved = |host| async move { ApiServer::resolve(host).await };
    assert_eq!(resolved(None).await, ApiServer::None);
    assert_eq!(resolved(Some("::ffff:10.96.0.1")).await, ApiServer::At(vec!["10.96.0.1".parse().unwrap()]));
    assert_eq!(resolved(Some("api server")).await, ApiServer::Unknown);
}

#[rstest]
#[case::another_namespace("shop.other.svc")]
#[case::in_full("SHOP.Other.svc.cluster.local.")]
#[case::of_a_service("0.shop.acme.svc")]
#[case::no_service("acme.svc")]
fn a_cluster_name_of_another_tenant_is_refused_at_every_address(#[case] host: &str) {
    let policy = AddressPolicy::for_pod("acme", ranges(&["10.0.0.0/8"]));
    for policy in [&policy, &AddressPolicy::default()] {
        assert!(
            policy
                .refusal_before_lookup(host)
                .is_some_and(|reason| reason.contains("not a Service of the Job's namespace"))
        );
        assert!(!allows(policy, host, "1.1.1.1") && !allows(policy, host, "10.96.0.7"));
    }
    assert!(AddressPolicy::for_local_machine().refusal_before_lookup(host).is_none());
}

/// A machine in the node's domain may have the same name.
#[test]
fn a_name_of_one_label_is_only_looked_up_as_a_service() {
    let policy = AddressPolicy::for_pod("acme", Vec::new());
    for (host, name) in
        [("ip-10-0-0-5", "ip-10-0-0-5.acme.svc"), ("Shop.", "shop.acme.svc"), ("a.example", "a.example")]
    {
        assert_eq!(policy.lookup_name(host), name);
    }
    assert_eq!(AddressPolicy::for_local_machine().lookup_name("shop"), "shop");
}

#[test]
fn a_local_machine_allows_itself_and_its_network_but_no_metadata_services() {
    let policy = AddressPolicy::for_local_machine();
    assert!(["127.0.0.1", "::1", "192.168.1.7", "1.1.1.1"].iter().all(|address| allows(&policy, "x", address)));
    assert!(!["169.254.169.254", "fd00:ec2::254", "0.0.0.0"].iter().any(|address| allows(&policy, "x", address)));
}

#[rstest]
#[case::v4("127.0.0.1", true)]
#[case::v6("[::1]", true)]
#[case::mapped("[::ffff:a9fe:a9fe]", true)]
#[case::public("1.1.1.1", false)]
#[case::a_name("localhost", false)]
fn an_address_in_a_url_is_checked_before_the_lookup(#[case] host: &str, #[case] is_refused: bool) {
    assert_eq!(AddressPolicy::default().refusal_before_lookup(host).is_some(), is_refused);
}

/// IPv6 addresses have no dot either.
#[test]
fn a_private_address_in_a_url_is_not_taken_for_a_service() {
    let policy = AddressPolicy::for_pod("acme", Vec::new());
    for host in ["[fd12::1]", "[::ffff:a00:1]", "[64:ff9b::a00:1]", "10.0.0.1"] {
        assert!(
            policy.refusal_before_lookup(host).is_some_and(|reason| reason.contains("a private address")),
            "{host}"
        );
    }
}

#[tokio::test]
async fn a_name_is_checked_once_it_is_resolved() {
    let resolve_localhost = |policy: AddressPolicy| async move { policy.resolve("localhost".parse().unwrap()).await };
    let Err(refusal) = resolve_localhost(AddressPolicy::default()).await else { panic!("not refused") };
    assert!(refusal.to_string().starts_with("localhost is at "), "{refusal}");
    let mut resolved = resolve_localhost(AddressPolicy::for_local_machine()).await.unwrap();
    assert!(resolved.all(|address| address.ip().is_loopback()));
}

/// A name server whose owner changes the address of a name: each lookup has the next answer.
#[derive(Debug)]
pub(super) struct Answers(Mutex<VecDeque<IpAddr>>);

impl Answers {
    fn new(addresses: &[&str]) -> Arc<Self> {
        Arc::new(Self(Mutex::new(addresses.iter().map(|address| address.parse().unwrap()).collect())))
    }

    pub(super) fn take(&self, name: &str) -> Vec<SocketAddr> {
        assert_eq!(name, "api.attacker.example");
        let address = self.0.lock().unwrap().pop_front().expect("no lookup is left");
        vec![SocketAddr::new(address, 0)]
    }

    fn left(&self) -> usize {
        self.0.lock().unwrap().len()
    }
}

/// Starts a server that answers each connection once, and closes it. Returns its port.
fn one_answer_a_connection() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let _ = connection.read(&mut [0; 4096]);
            let _ = connection.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok");
        }
    });
    port
}

/// Sends a GET request. Returns the body, or the innermost error.
async fn ask(client: &reqwest::Client, url: &str) -> Result<String, String> {
    let response = client.get(url).send().await.map_err(|error| root_cause(&error))?;
    response.text().await.map_err(|error| root_cause(&error))
}

/// Returns the policy of a pod that may connect to 127.0.0.1, with these answers to its lookups.
fn policy_with(answers: &Arc<Answers>) -> AddressPolicy {
    let names = Names::Scripted(answers.clone());
    AddressPolicy { names, ..AddressPolicy::for_pod("acme", ranges(&["127.0.0.1/32"])) }
}

/// The connection uses the address that was checked: a second lookup between check and connection would have the next answer.
#[tokio::test]
async fn a_name_that_changes_its_address_after_the_check_is_refused_at_the_next_connection() {
    install_tls_provider();
    let url = format!("http://api.attacker.example:{}/", one_answer_a_connection());
    let answers = Answers::new(&["127.0.0.1", "169.254.169.254", "127.0.0.1"]);
    let options = ClientOptions { addresses: Some(policy_with(&answers)), ..ClientOptions::default() };
    let client = client(&url, IDLE_TIMEOUT, options).unwrap();
    assert_eq!(answers.left(), 3, "no name is resolved before a connection is made");
    assert_eq!(ask(&client, &url).await.unwrap(), "ok");
    assert_eq!(answers.left(), 2, "one lookup serves the check and the connection");
    let refusal = ask(&client, &url).await.unwrap_err();
    assert!(refusal.starts_with("api.attacker.example is at 169.254.169.254, a link-local"), "{refusal}");
    assert_eq!(ask(&client, &url).await.unwrap(), "ok", "each connection is decided by its own lookup");
}

#[rstest]
#[case::metadata("169.254.169.254", "a link-local, metadata or reserved address")]
#[case::metadata_in_ipv6("fd00:ec2::254", "a link-local, metadata or reserved address")]
#[case::another_tenant("10.96.0.7", "a private address")]
#[case::the_node_itself("127.0.0.2", "a loopback address")]
#[case::the_api_server("127.0.0.1", "the API server of the cluster")]
#[tokio::test]
async fn a_name_that_passes_the_check_of_the_url_is_refused_when_the_connection_is_made(
    #[case] address: &str,
    #[case] reason: &str,
) {
    install_tls_provider();
    let url = format!("http://api.attacker.example:{}/", one_answer_a_connection());
    let answers = Answers::new(&[address]);
    let policy = policy_with(&answers).without_api_server(ApiServer::At(vec![Ipv4Addr::LOCALHOST.into()]));
    assert_eq!(policy.refusal_before_lookup("api.attacker.example"), None);
    let options = ClientOptions { addresses: Some(policy), ..ClientOptions::default() };
    let client = client(&url, IDLE_TIMEOUT, options).unwrap();
    let refusal = ask(&client, &url).await.unwrap_err();
    assert!(refusal.contains(address) && refusal.contains(reason), "{refusal}");
    assert_eq!(answers.left(), 0);
}

proptest! {
    /// Addresses that the standard library classifies as special are never public.
    #[test]
    fn no_special_ipv4_address_is_public(bits in any::<u32>()) {
        let address = Ipv4Addr::from_bits(bits);
        let is_special = address.is_private() || address.is_loopback() || address.is_link_local() || address.is_multicast()
            || address.is_broadcast() || address.is_documentation() || address.is_unspecified();
        prop_assert!(!is_special || AddressKind::classify(address.into()) != AddressKind::Public);
        prop_assert_eq!(AddressKind::classify(address.to_ipv6_mapped().into()), AddressKind::classify(address.into()));
    }

    #[test]
    fn no_special_ipv6_address_is_public(bits in any::<u128>()) {
        let address = Ipv6Addr::from_bits(bits);
        let is_special = address.is_unicast_link_local() || address.is_unique_local() || address.is_multicast();
        prop_assert!(!is_special || AddressKind::classify(address.into()) != AddressKind::Public);
    }
}
