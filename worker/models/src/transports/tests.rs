//! Tests of the client against a TLS server and through a proxy.

use super::*;
use crate::fixture::{Server, completion, endpoint, request, response, retry_policy};
use crate::{Clients, Error};
use bloomery_crds::report::ExternalWait;
use bloomery_crds::run::{CaFile, CaObject};
use bloomery_engine::event::Answer;
use bloomery_http::Pauses;
use bloomery_redact::Redactor;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

const LONG_TIMEOUT: Duration = Duration::from_mins(1);

/// Returns an endpoint that trusts the certificates in a file.
fn trusting(url: &str, path: &Path) -> ModelEndpoint {
    let object = CaObject::ConfigMap("corporate".into());
    let ca = CaFile { path: path.to_str().unwrap().into(), object, key: "ca.crt".into() };
    ModelEndpoint { ca: Some(ca), ..endpoint(url) }
}

fn clients(endpoint: &ModelEndpoint, total: Duration) -> Clients {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Clients::new(std::slice::from_ref(endpoint), "uid-1", &retry_policy(total), local(), &Redactor::default()).unwrap()
}

fn local() -> AddressPolicy {
    AddressPolicy::for_local_machine()
}

async fn ask(clients: &Clients, listener: &dyn Fn(ExternalWait)) -> Result<Answer, Error> {
    clients.complete(&request(&[]), LONG_TIMEOUT, &Pauses::new(listener)).await
}

#[tokio::test]
async fn missing_certificates_are_retried_and_rotated_ones_take_effect_at_once() {
    let (_server, url, ca) = Server::start_tls([completion("Done")]).await;
    let (_other, _, wrong) = Server::start_tls([completion("Done")]).await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.crt");
    let clients = clients(&trusting(&url, &path), LONG_TIMEOUT);
    let messages = Mutex::new(Vec::new());
    // The file is missing at first. Each reported wait replaces its content: by a text, by a wrong certificate, by the right one.
    let replace = |wait: ExternalWait| {
        let ExternalWait::ModelUnavailable { message } = wait else { panic!("{wait:?}") };
        let mut messages = messages.lock().unwrap();
        messages.push(message);
        std::fs::write(&path, ["no certificate", &wrong, &ca][messages.len() - 1]).unwrap();
    };
    assert_eq!(ask(&clients, &replace).await.unwrap().text, "Done");
    let messages = messages.into_inner().unwrap();
    let parts = [
        "needs the key `ca.crt` of the ConfigMap `corporate`, which is missing or empty",
        "needs the certificates in the key `ca.crt` of the ConfigMap `corporate`, which cannot be used: it holds no",
        "cannot be reached: invalid peer certificate",
    ];
    for (message, part) in messages.iter().zip(parts) {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(messages.len(), parts.len(), "{messages:?}");
    std::fs::write(&path, &wrong).unwrap();
    let without_retries =
        Clients::new(&[trusting(&url, &path)], "uid-1", &retry_policy(Duration::ZERO), local(), &Redactor::default())
            .unwrap();
    let failure = ask(&without_retries, &|_| {}).await.unwrap_err();
    assert!(failure.message.contains("invalid peer certificate"), "{failure}");
}

#[tokio::test]
async fn a_certificate_of_an_unknown_ca_is_not_trusted() {
    let (server, url, _) = Server::start_tls([completion("Done")]).await;
    let failure = ask(&clients(&endpoint(&url), Duration::ZERO), &|_| {}).await.unwrap_err();
    assert!(failure.message.contains("Check its address") || failure.message.contains("certificate"), "{failure}");
    assert_eq!(server.request_count(), 0);
}

#[tokio::test]
async fn models_with_the_same_certificates_and_proxy_share_a_client() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let transports = Transports::new(local());
    let plain = endpoint("http://models.example/v1");
    for model in [&plain, &ModelEndpoint { name: "fast".into(), ..plain.clone() }] {
        transports.client(model).unwrap();
    }
    assert_eq!(transports.clients.lock().unwrap().len(), 1);
    transports.client(&ModelEndpoint { proxy: Some("http://proxy.example:3128".into()), ..plain }).unwrap();
    assert_eq!(transports.clients.lock().unwrap().len(), 2);
}

/// Starts a proxy that opens one tunnel. Returns its URL, and a task that returns the target of the tunnel.
async fn proxy() -> (String, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let tunnel = tokio::spawn(async move {
        let (mut client, _) = listener.accept().await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(client.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        let target = head.strip_prefix("CONNECT ").unwrap().split(' ').next().unwrap().to_owned();
        let mut server = TcpStream::connect(&target).await.unwrap();
        client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
        tokio::spawn(async move { copy_bidirectional(&mut client, &mut server).await });
        target
    });
    (url, tunnel)
}

#[tokio::test]
async fn requests_go_through_the_proxy() {
    let (server, url, ca) = Server::start_tls([completion("Done")]).await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.crt");
    std::fs::write(&path, ca).unwrap();
    let (proxy, tunnel) = proxy().await;
    let endpoint = ModelEndpoint { proxy: Some(proxy), ..trusting(&url, &path) };
    assert_eq!(ask(&clients(&endpoint, LONG_TIMEOUT), &|_| {}).await.unwrap().text, "Done");
    assert!(url.contains(&tunnel.await.unwrap()));
    assert_eq!(server.request_count(), 1);
}

#[tokio::test]
async fn an_unreachable_proxy_is_an_error() {
    let (server, url) = Server::start([response(200, "")]).await;
    let endpoint = ModelEndpoint { proxy: Some("http://127.0.0.1:1".into()), ..endpoint(&url) };
    let failure = ask(&clients(&endpoint, Duration::ZERO), &|_| {}).await.unwrap_err();
    assert!(failure.message.contains("cannot be reached"), "{failure}");
    assert_eq!(server.request_count(), 0);
}

#[tokio::test]
async fn a_model_or_a_proxy_at_a_refused_address_is_not_asked() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let (server, url) = Server::start([]).await;
    let through =
        |proxy: &str| ModelEndpoint { proxy: Some(proxy.to_owned()), ..endpoint("http://api.example.com/v1") };
    let metadata = endpoint("http://169.254.169.254/v1");
    for (refused, why) in [
        (endpoint(&url), "a loopback address"),
        (metadata, "a link-local, metadata or reserved address"),
        (endpoint("https://kubernetes.default.svc/v1"), "is the API server of the cluster"),
        (endpoint("http://model.other.svc:8080/v1"), "is not a Service of the Job's namespace"),
        (through("http://169.254.169.254:80"), "a link-local, metadata or reserved address"),
        (through("http://proxy.other.svc:3128"), "is not a Service of the Job's namespace"),
    ] {
        let addresses = AddressPolicy::for_pod("acme", Vec::new());
        let clients = Clients::new(&[refused], "uid-1", &retry_policy(Duration::ZERO), addresses, &Redactor::default());
        let error = ask(&clients.unwrap(), &|_| {}).await.unwrap_err();
        assert!(error.message.contains(why), "{}", error.message);
    }
    drop(server);
}
