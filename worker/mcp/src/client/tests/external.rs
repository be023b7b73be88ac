//! Tests of a server outside of the cluster: its headers, certificates and addresses.

use super::scripted_server::{ScriptedServer, done, json};
use super::*;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use bloomery_crds::run::{CaFile, CaObject, KeyFile, SecretHeader};
use bloomery_testkit::local_server;
use bloomery_testkit::tls;

/// Starts a server that requires the header `Authorization: Bearer s3cret`.
async fn protected_server() -> String {
    let router = ScriptedServer::answering_calls(|call| json(&done(call))).router();
    let guard = async |request: Request, next: Next| -> Response {
        match request.headers().get("authorization") {
            Some(value) if value == "Bearer s3cret" => next.run(request).await,
            _ => StatusCode::UNAUTHORIZED.into_response(),
        }
    };
    format!("{}/mcp", local_server::serve(router.layer(from_fn(guard))).await)
}

fn client_of(url: &str, external: &ExternalMcp, range: &str) -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let addresses = AddressPolicy::for_pod("acme", vec![range.parse().unwrap()]);
    let client = Client::external(addresses, &McpEndpoint { url: url.to_owned() }, external, Redactor::default());
    Client { unreachable_retry_period: Duration::ZERO, ..client }
}

fn key_file(dir: &tempfile::TempDir) -> KeyFile {
    let path = dir.path().join("token").to_str().unwrap().to_owned();
    KeyFile { path, secret: "tools".into(), key: "token".into() }
}

#[tokio::test]
async fn each_request_carries_the_headers_and_a_corrected_secret_takes_effect() {
    let dir = tempfile::tempdir().unwrap();
    let header = SecretHeader { name: "Authorization".into(), scheme: Some("Bearer".into()), file: key_file(&dir) };
    let external = ExternalMcp { headers: vec![header], ca: None };
    let client = client_of(&protected_server().await, &external, "127.0.0.0/8");

    let error = client.list(LONG_TIMEOUT).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    assert!(error.to_string().contains("it needs the key `token` of the Secret `tools`"), "{error}");
    let CallOutcome::Failed { text, .. } = call(&client, "echo", "{}").await else { panic!("not failed") };
    assert!(text.contains("The call was not sent") && text.contains("the Secret `tools`"), "{text}");

    std::fs::write(dir.path().join("token"), "wrong\n").unwrap();
    let error = client.list(LONG_TIMEOUT).await.unwrap_err().to_string();
    let remedy = "it answered HTTP 401: an empty body. Set or correct the credentials in `spec.mcpServer.headers`";
    assert!(error.ends_with(remedy), "{error}");
    std::fs::write(dir.path().join("token"), "s3cret\n").unwrap();
    assert_eq!(client.list(LONG_TIMEOUT).await.unwrap().len(), TOOLS.len());
    assert_eq!(call(&client, "echo", "{}").await, completed("done"));
    client.close().await;
}

/// A server whose certificate must be of the CA in this file.
fn signed_by(path: &str) -> ExternalMcp {
    let ca = CaFile { path: path.into(), object: CaObject::ConfigMap("corporate".into()), key: "ca.crt".into() };
    ExternalMcp { headers: Vec::new(), ca: Some(ca) }
}

#[tokio::test]
async fn a_server_is_called_over_tls_only_with_a_certificate_of_its_ca() {
    let (port, ca) = tls::serve(ScriptedServer::answering_calls(|call| json(&done(call))).router()).await;
    let url = format!("https://127.0.0.1:{port}/mcp");
    let (_, other_ca) = tls::localhost();
    let file = tempfile::NamedTempFile::new().unwrap();
    let client = || client_of(&url, &signed_by(file.path().to_str().unwrap()), "127.0.0.0/8");

    std::fs::write(file.path(), other_ca).unwrap();
    let error = client().list(LONG_TIMEOUT).await.unwrap_err().to_string();
    assert!(error.contains("certificate"), "{error}");
    std::fs::write(file.path(), ca).unwrap();
    let trusting = client();
    assert_eq!(trusting.list(LONG_TIMEOUT).await.unwrap().len(), TOOLS.len());
    assert_eq!(call(&trusting, "echo", "{}").await, completed("done"));
    trusting.close().await;
}

#[tokio::test]
async fn a_server_without_its_certificates_is_not_asked() {
    let external = signed_by("/nonexistent/ca.crt");
    let client = client_of("https://tools.example/mcp", &external, "127.0.0.0/8");
    let error = client.list(LONG_TIMEOUT).await.unwrap_err();
    assert!(matches!(error, Error::Unavailable { .. }), "{error}");
    assert!(error.to_string().contains("it needs the key `ca.crt` of the ConfigMap `corporate`"), "{error}");
}

#[tokio::test]
async fn a_server_at_an_address_that_is_not_allowed_is_not_asked() {
    for (url, reason) in [
        ("https://169.254.169.254/mcp", "link-local"),
        ("https://127.0.0.1:9/mcp", "a loopback address"),
        ("https://orders.other.svc/mcp", "is not a Service of the Job's namespace"),
    ] {
        let client = client_of(url, &ExternalMcp::default(), "10.0.0.0/8");
        let error = client.list(LONG_TIMEOUT).await.unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}
