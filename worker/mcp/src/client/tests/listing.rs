//! Tests of lists of tools, and of their limits.

use super::scripted_server::{ScriptedServer, answer, json};
use super::*;
use crate::limits::DEFAULT_ANSWER_BYTES;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use bloomery_crds::report::ServerToken;
use bloomery_testkit::local_server;
use rstest::rstest;
use serde_json::{Value, json};
use std::slice;

fn tools(count: usize, description: &str) -> Vec<Value> {
    (0..count)
        .map(|n| json!({"name": format!("t{n}"), "description": description, "inputSchema": {"type": "object"}}))
        .collect()
}

/// Returns the requested page of a list of `last` pages that all have the same tools.
fn page(request: &Value, last: usize, tools: &[Value]) -> Response {
    let at: usize = request["params"]["cursor"].as_str().map_or(1, |cursor| cursor.parse().unwrap());
    let next = if at < last { json!((at + 1).to_string()) } else { Value::Null };
    json(&answer(request, &json!({"tools": tools, "nextCursor": next})))
}

#[tokio::test]
async fn every_list_reads_all_pages() {
    let server = ScriptedServer::answering_lists(|request| page(request, 32, &tools(16, "x")));
    let client = client(&server.start().await);
    for times in 1..=2 {
        assert_eq!(client.list(LONG_TIMEOUT).await.unwrap().len(), 512);
        assert_eq!(server.count("tools/list"), 32 * times);
    }
    assert_eq!(server.count("initialize"), 1);
}

#[rstest]
#[case::pages(|request: &Value| page(request, 33, &[]), "the list has more than 32 pages")]
#[case::endless(|request: &Value| page(request, usize::MAX, &[]), "the list has more than 32 pages")]
#[case::tools(|request: &Value| page(request, 1, &tools(513, "")), "the list has more than 512 tools")]
#[case::ten_thousand_tools(|request: &Value| page(request, 1, &tools(10_000, "")), "the list has more than 512 tools")]
#[case::bytes(|request: &Value| page(request, 3, &tools(9, &"x".repeat(60_000))), "the list has more than 1048576 bytes")]
#[tokio::test]
async fn a_list_beyond_the_limits_is_unusable(#[case] respond: fn(&Value) -> Response, #[case] reason: &str) {
    let url = ScriptedServer::answering_lists(respond).start().await;
    let error = client(&url).list(LONG_TIMEOUT).await.unwrap_err();
    assert_eq!(error, Error::Unusable { server: url, message: reason.into() });
}

#[tokio::test]
async fn a_tool_without_a_name_is_ignored() {
    let nameless = json!({"name": "", "inputSchema": {"type": "object"}});
    let server = ScriptedServer::answering_lists(move |request| {
        page(request, 1, &[&[nameless.clone()][..], &tools(1, "")].concat())
    });
    let listed = client(&server.start().await).list(LONG_TIMEOUT).await.unwrap();
    assert_eq!(listed.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["t0"]);
}

#[rstest]
#[case::no_schema(json!({"name": "bad"}))]
#[case::no_object(json!({"name": "bad", "inputSchema": true}))]
#[case::large(json!({"name": "bad", "inputSchema": {"type": "object"}, "description": "x".repeat(900_000)}))]
#[case::not_a_tool(json!(7))]
#[tokio::test]
async fn a_tool_that_cannot_be_used_does_not_affect_the_others(#[case] bad: Value) {
    let server = ScriptedServer::answering_lists(move |request| {
        page(request, 1, &[&tools(2, "")[..], slice::from_ref(&bad)].concat())
    });
    let listed = client(&server.start().await).list(LONG_TIMEOUT).await.unwrap();
    assert_eq!(listed.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["t0", "t1"]);
}

#[tokio::test]
async fn a_tool_that_is_nested_too_deep_does_not_affect_the_others() {
    let deep = format!(r#"{{"name":"deep","inputSchema":{}{{}}{}}}"#, r#"{"a":"#.repeat(200), "}".repeat(200));
    let server = ScriptedServer::answering_lists(move |request| {
        let tools = format!(r#"{{"tools":[{deep},{}]}}"#, tools(1, "")[0]);
        let text = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{tools}}}"#, request["id"]);
        ([("content-type", "application/json")], text).into_response()
    });
    let listed = client(&server.start().await).list(LONG_TIMEOUT).await.unwrap();
    assert_eq!(listed.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["t0"]);
}

#[rstest]
#[case::down(|_: &Value| StatusCode::SERVICE_UNAVAILABLE.into_response(), "it answered HTTP 503")]
#[case::huge(|request: &Value| page(request, 1, &tools(1, &"x".repeat(DEFAULT_ANSWER_BYTES))), "its answer has more than 8388608 bytes")]
#[case::refusal(
    |request: &Value| json(&json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32603, "message": "broken"}})),
    "it refused to list its tools: broken (code -32603)"
)]
#[case::other(|request: &Value| json(&answer(request, &json!({"content": []}))), "its answer is not a list of tools")]
#[tokio::test]
async fn after_a_failed_list_the_next_list_begins_a_new_session(
    #[case] respond: fn(&Value) -> Response,
    #[case] reason: &str,
) {
    let server = ScriptedServer::answering_lists(respond);
    let client = client(&server.start().await);
    for times in 1..=2 {
        let error = client.list(LONG_TIMEOUT).await.unwrap_err();
        let Error::Unavailable { message, .. } = &error else { panic!("{error:?}") };
        assert!(message.contains(reason), "{message}");
        assert_eq!(server.count("initialize"), times);
    }
}

/// Starts a server that answers every request with `answer`, and returns its URL.
async fn answering(answer: impl IntoResponse + Clone + Send + Sync + 'static) -> String {
    let router = axum::Router::new().fallback(move || async move { answer });
    format!("{}/mcp", local_server::serve(router).await)
}

#[rstest]
#[case::temporary(307)]
#[case::permanent(308)]
#[case::found(302)]
#[tokio::test]
async fn a_redirect_is_refused_without_a_retry(#[case] status: u16) {
    let status = StatusCode::from_u16(status).unwrap();
    let url = answering((status, [("location", "/mcp/")])).await;
    let error = client(&url).list(LONG_TIMEOUT).await.unwrap_err();
    let message = format!(
        "it redirects to {url}/ (HTTP {}), and redirects are not followed: set the URL of the server to its final address",
        status.as_u16()
    );
    assert_eq!(error, Error::Refused { server: url, message });
}

#[tokio::test]
async fn a_redirect_to_a_metadata_address_is_not_followed() {
    let metadata = "http://169.254.169.254/latest/meta-data/";
    let url = answering((StatusCode::FOUND, [("location", metadata)])).await;
    let error = client(&url).list(LONG_TIMEOUT).await.unwrap_err().to_string();
    assert!(
        error.contains(&format!("it redirects to {metadata} (HTTP 302), and redirects are not followed")),
        "{error}"
    );
}

/// Returns a client that sends a token of the operator.
fn client_with_token(url: &str) -> Client {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let tokens = ServerTokens::new(Redactor::default());
    tokens.set(&ServerToken { token: "header.claims.c2lnbmF0dXJl".to_owned(), valid_seconds: 600 });
    Client::with_token(&McpEndpoint { url: url.to_owned() }, tokens, Redactor::default()).unwrap()
}

/// The error has the remedy for the kind of the server.
#[rstest]
#[case::local(
    |url: &str| client(url).without_credentials(),
    true,
    "Only a program can send it credentials: see --mcp-command and --mcp-env of `bloomery run`"
)]
#[case::in_the_cluster(client, false, "Let it accept requests without credentials, or correct its own credentials")]
#[case::of_the_operator(
    client_with_token,
    false,
    "Let it accept the operator's token without other credentials, or correct its own ones"
)]
#[tokio::test]
async fn a_server_that_requires_credentials_is_retried_only_if_credentials_may_be_added(
    #[case] new_client: fn(&str) -> Client,
    #[case] is_final: bool,
    #[case] remedy: &str,
    #[values(StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN)] status: StatusCode,
    #[values("who are you?", "no token.")] body: &'static str,
) {
    let error = new_client(&answering((status, body)).await).list(LONG_TIMEOUT).await.unwrap_err();
    assert!(error.to_string().ends_with(&format!("it answered HTTP {}: {body} {remedy}", status.as_u16())), "{error}");
    assert_eq!(matches!(error, Error::Refused { .. }), is_final, "{error:?}");
}

#[tokio::test]
async fn an_answer_that_is_not_mcp_is_described() {
    let url = answering(([("content-type", "text/html")], "<h1>Welcome</h1>")).await;
    let error = client(&url).list(LONG_TIMEOUT).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "the tools of the MCP server {url} cannot be listed: it answered HTTP 200 with a body of type `text/html`"
        )
    );
}

#[tokio::test]
async fn a_list_ends_at_its_timeout_if_the_server_never_answers() {
    let router = axum::Router::new().fallback(|| async { std::future::pending::<()>().await });
    let url = local_server::serve(router).await;
    let error = client(&url).list(Duration::from_millis(100)).await.unwrap_err();
    assert!(error.to_string().ends_with("it did not begin a session in time"), "{error}");
}
