//! An attempt whose MCP server is outside of the cluster (`mcpServer.uri`), with a header and certificates from Secrets.

use super::*;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse;
use bloomery_crds::report::ExternalWait;
use bloomery_crds::run::{CaFile, CaObject, ExternalMcp, KeyFile, SecretHeader};
use bloomery_testkit::report_server::Received;
use bloomery_testkit::tls;
use std::fs;

/// The secret value of the header.
const TOKEN: &str = "token-of-the-tools";

/// The header that the server requires.
const AUTHORIZATION: &str = "Bearer token-of-the-tools";

/// Serves `exports` over TLS. Requests without the header are refused, and counted in `refused`. Returns the URL of the server, and the
/// certificate of its CA as PEM.
async fn serve_over_tls(exports: &Exports, refused: &Arc<AtomicU32>) -> (String, String) {
    let refused = Arc::clone(refused);
    let guard = move |request: Request, next: Next| {
        let refused = Arc::clone(&refused);
        async move {
            match request.headers().get("authorization") {
                Some(value) if value == AUTHORIZATION => next.run(request).await,
                _ => {
                    refused.fetch_add(1, Ordering::Relaxed);
                    StatusCode::UNAUTHORIZED.into_response()
                }
            }
        }
    };
    let (port, ca) = tls::serve(exports.router().layer(from_fn(guard))).await;
    (format!("https://127.0.0.1:{port}/mcp"), ca)
}

/// Returns a stand whose Skill names the server at `url`. The files of the header and of the certificates are `header` and `ca.crt` in
/// its directory.
async fn stand_with_server(url: &str) -> Stand {
    let mut stand = Stand::new(script("export"), Refund::Answers).await;
    let header = json!({
        "name": "Authorization", "scheme": "Bearer", "secretKeyRef": {"name": "tools", "key": "token"},
    });
    let ca = json!({"secretKeyRef": {"name": "tools-ca", "key": "ca.crt"}});
    let server = json!({"uri": url, "headers": [header], "ca": ca});
    stand.skill.mcp_server = Some(serde_json::from_value(server).unwrap());
    stand.mcp = Some(McpEndpoint { url: url.to_owned() });
    let path = |name: &str| stand.dir.path().join(name).to_str().unwrap().to_owned();
    let file = KeyFile { path: path("header"), secret: "tools".into(), key: "token".into() };
    let header = SecretHeader { name: "Authorization".into(), scheme: Some("Bearer".into()), file };
    let object = CaObject::Secret("tools-ca".into());
    let ca = CaFile { path: path("ca.crt"), object, key: "ca.crt".into() };
    stand.external_mcp = Some(ExternalMcp { headers: vec![header], ca: Some(ca) });
    stand
}

/// Returns whether a report says that the run waits for the server, because the value of the header is missing.
fn waits_for_header(received: &Received) -> bool {
    let Some(ExternalWait::McpUnavailable { message }) = &received.report.waiting else { return false };
    message.contains("it needs the key `token` of the Secret `tools`, which is missing or empty")
}

#[tokio::test]
async fn a_server_outside_of_the_cluster_is_called_with_its_header_and_certificates_once_they_are_there() {
    let (exports, refused) = (Exports::default(), Arc::default());
    let (url, ca) = serve_over_tls(&exports, &refused).await;
    let stand = stand_with_server(&url).await;
    fs::write(stand.dir.path().join("ca.crt"), ca).unwrap();
    let args = stand.args(1);
    let inputs = Inputs::read(&args, stand.redactor.clone()).unwrap();
    let tools = tools_of(&args, &inputs);
    let add_key = async {
        stand.operator.until_received(|received| received.iter().any(waits_for_header)).await;
        fs::write(stand.dir.path().join("header"), TOKEN).unwrap();
    };
    let (exit, ()) = tokio::join!(stand.run_on(1, Disk, Stop::default(), &tools), add_key);
    tools.close().await;
    assert_eq!(exit.unwrap(), Exit::Finished);
    assert_eq!(stand.termination(1).outcome.unwrap().code, OutcomeCode::Succeeded);
    let results = stand.events().into_iter().filter(|name| *name == "result.offloaded").count();
    assert_eq!((exports.calls.load(Ordering::Relaxed), results), (1, 1));
    assert_eq!(refused.load(Ordering::Relaxed), 0, "a request without the header was sent");
    assert_eq!(stand.redactor.redact_text(TOKEN), "[redacted: Authorization]");
}
