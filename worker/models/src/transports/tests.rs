//! The client against a real TLS server, and through a real proxy.

use super::*;
use crate::fixture::{Server, completion, endpoint, patience, request, say};
use crate::{Clients, Error};
use bloomery_crds::report::ExternalWait;
use bloomery_crds::run::CaObject;
use bloomery_engine::event::Answer;
use bloomery_http::Pauses;
use bloomery_redact::Redactor;
use std::path::Path;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

const PLENTY: Duration = Duration::from_mins(1);

fn trusting(url: &str, path: &Path) -> ModelEndpoint {
    let object = CaObject::ConfigMap("corporate".into());
    let ca = CaFile { path: path.to_str().unwrap().into(), object, key: "ca.crt".into() };
    ModelEndpoint { ca: Some(ca), ..endpoint(url) }
}

fn clients(endpoint: &ModelEndpoint, whole: Duration) -> Clients {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Clients::new(std::slice::from_ref(endpoint), "uid-1", &patience(whole), &Redactor::default()).unwrap()
}

async fn ask(clients: &Clients, tell: &dyn Fn(ExternalWait)) -> Result<Answer, Error> {
    clients.complete(&request(&[]), PLENTY, &Pauses::new(tell)).await
}

#[tokio::test]
async fn certificates_are_waited_for_and_those_that_rotate_count_from_the_next_request_on() {
    let (_server, url, ca) = Server::start_tls([completion("Done")]).await;
    let (_other, _, wrong) = Server::start_tls([completion("Done")]).await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.crt");
    let clients = clients(&trusting(&url, &path), PLENTY);
    let told = Mutex::new(Vec::new());
    // What stands there first is nothing, then no certificate, then that of another; each is mended once it is told.
    let mend = |waiting: ExternalWait| {
        let ExternalWait::ModelUnavailable { message } = waiting else { panic!("{waiting:?}") };
        let mut told = told.lock().unwrap();
        told.push(message);
        std::fs::write(&path, ["no certificate", &wrong, &ca][told.len() - 1]).unwrap();
    };
    assert_eq!(ask(&clients, &mend).await.unwrap().text, "Done");
    let told = told.into_inner().unwrap();
    let parts = [
        "needs the key `ca.crt` of the ConfigMap `corporate`, which is missing or empty",
        "needs the certificates in the key `ca.crt` of the ConfigMap `corporate`, which cannot be used: it holds no",
        "cannot be reached: invalid peer certificate",
    ];
    for (message, part) in told.iter().zip(parts) {
        assert!(message.contains(part), "{message}");
    }
    assert_eq!(told.len(), parts.len(), "{told:?}");
    std::fs::write(&path, &wrong).unwrap();
    let impatient =
        Clients::new(&[trusting(&url, &path)], "uid-1", &patience(Duration::ZERO), &Redactor::default()).unwrap();
    let failure = ask(&impatient, &|_| {}).await.unwrap_err();
    assert!(failure.message.contains("invalid peer certificate"), "{failure}");
}

#[tokio::test]
async fn a_server_that_the_system_does_not_know_is_not_trusted() {
    let (server, url, _) = Server::start_tls([completion("Done")]).await;
    let failure = ask(&clients(&endpoint(&url), Duration::ZERO), &|_| {}).await.unwrap_err();
    assert!(failure.message.contains("Check its baseUrl") || failure.message.contains("certificate"), "{failure}");
    assert_eq!(server.times(), 0);
}

#[tokio::test]
async fn models_that_trust_the_same_share_their_connections() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let transports = Transports::default();
    let plain = endpoint("http://models.example/v1");
    for model in [&plain, &ModelEndpoint { name: "fast".into(), ..plain.clone() }] {
        transports.client(model).unwrap();
    }
    assert_eq!(transports.0.lock().unwrap().len(), 1);
    transports.client(&ModelEndpoint { proxy: Some("http://proxy.example:3128".into()), ..plain }).unwrap();
    assert_eq!(transports.0.lock().unwrap().len(), 2);
}

/// A proxy that makes one tunnel; gives its URL, and where the tunnel was to lead.
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
async fn a_proxy_that_is_named_is_gone_through() {
    let (server, url, ca) = Server::start_tls([completion("Done")]).await;
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.crt");
    std::fs::write(&path, ca).unwrap();
    let (proxy, tunnel) = proxy().await;
    let endpoint = ModelEndpoint { proxy: Some(proxy), ..trusting(&url, &path) };
    assert_eq!(ask(&clients(&endpoint, PLENTY), &|_| {}).await.unwrap().text, "Done");
    assert!(url.contains(&tunnel.await.unwrap()));
    assert_eq!(server.times(), 1);
}

#[tokio::test]
async fn a_proxy_that_is_not_there_is_told() {
    let (server, url) = Server::start([say(200, "")]).await;
    let endpoint = ModelEndpoint { proxy: Some("http://127.0.0.1:1".into()), ..endpoint(&url) };
    let failure = ask(&clients(&endpoint, Duration::ZERO), &|_| {}).await.unwrap_err();
    assert!(failure.message.contains("cannot be reached"), "{failure}");
    assert_eq!(server.times(), 0);
}
