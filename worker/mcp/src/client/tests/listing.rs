//! Lists, and their bounds.

use super::rude::{Rude, answer, json};
use super::*;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use rstest::rstest;
use serde_json::{Value, json};
use std::slice;

fn tools(count: usize, description: &str) -> Vec<Value> {
    (0..count)
        .map(|n| json!({"name": format!("t{n}"), "description": description, "inputSchema": {"type": "object"}}))
        .collect()
}

/// A list of `last` pages, each with as many tools.
fn page(request: &Value, last: usize, tools: &[Value]) -> Response {
    let at: usize = request["params"]["cursor"].as_str().map_or(1, |cursor| cursor.parse().unwrap());
    let next = if at < last { json!((at + 1).to_string()) } else { Value::Null };
    json(&answer(request, &json!({"tools": tools, "nextCursor": next})))
}

#[tokio::test]
async fn all_pages_are_read_anew_each_time() {
    let server = Rude::lists(|request| page(request, 32, &tools(16, "x")));
    let client = client(&server.start().await);
    for times in 1..=2 {
        assert_eq!(client.list(PLENTY).await.unwrap().len(), 512);
        assert_eq!(server.times("tools/list"), 32 * times);
    }
    assert_eq!(server.times("initialize"), 1);
}

#[rstest]
#[case::pages(|request: &Value| page(request, 33, &[]), "more than 32 pages")]
#[case::endless(|request: &Value| page(request, usize::MAX, &[]), "more than 32 pages")]
#[case::tools(|request: &Value| page(request, 1, &tools(513, "")), "more than 512 of them")]
#[case::bytes(|request: &Value| page(request, 3, &tools(9, &"x".repeat(60_000))), "more than 1048576 bytes of them")]
#[tokio::test]
async fn a_list_beyond_the_bounds_is_unusable(#[case] act: fn(&Value) -> Response, #[case] why: &str) {
    let url = Rude::lists(act).start().await;
    let error = client(&url).list(PLENTY).await.unwrap_err();
    assert_eq!(error, Error::Unusable { url, message: why.into() });
}

#[tokio::test]
async fn a_tool_without_a_name_is_not_taken() {
    let nameless = json!({"name": "", "inputSchema": {"type": "object"}});
    let server = Rude::lists(move |request| page(request, 1, &[&[nameless.clone()][..], &tools(1, "")].concat()));
    let listed = client(&server.start().await).list(PLENTY).await.unwrap();
    assert_eq!(listed.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["t0"]);
}

#[rstest]
#[case::no_schema(json!({"name": "bad"}))]
#[case::no_object(json!({"name": "bad", "inputSchema": true}))]
#[case::large(json!({"name": "bad", "inputSchema": {"type": "object"}, "description": "x".repeat(900_000)}))]
#[case::no_tool(json!(7))]
#[tokio::test]
async fn a_tool_that_cannot_be_used_leaves_the_others(#[case] bad: Value) {
    let server = Rude::lists(move |request| page(request, 1, &[&tools(2, "")[..], slice::from_ref(&bad)].concat()));
    let listed = client(&server.start().await).list(PLENTY).await.unwrap();
    assert_eq!(listed.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["t0", "t1"]);
}

#[tokio::test]
async fn a_tool_that_is_nested_without_an_end_leaves_the_others() {
    let deep = format!(r#"{{"name":"deep","inputSchema":{}{{}}{}}}"#, r#"{"a":"#.repeat(200), "}".repeat(200));
    let server = Rude::lists(move |request| {
        let tools = format!(r#"{{"tools":[{deep},{}]}}"#, tools(1, "")[0]);
        let text = format!(r#"{{"jsonrpc":"2.0","id":{},"result":{tools}}}"#, request["id"]);
        ([("content-type", "application/json")], text).into_response()
    });
    let listed = client(&server.start().await).list(PLENTY).await.unwrap();
    assert_eq!(listed.iter().map(|tool| tool.name.as_str()).collect::<Vec<_>>(), ["t0"]);
}

#[rstest]
#[case::down(|_: &Value| StatusCode::SERVICE_UNAVAILABLE.into_response(), "it answered HTTP 503")]
#[case::huge(|request: &Value| page(request, 1, &tools(1, &"x".repeat(MAX_BODY_BYTES))), "larger than 1048576 bytes")]
#[case::refusal(
    |request: &Value| json(&json!({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32603, "message": "broken"}})),
    "it refuses to list them: broken (code -32603)"
)]
#[case::other(|request: &Value| json(&answer(request, &json!({"content": []}))), "something else than a list of tools")]
#[tokio::test]
async fn a_list_that_does_not_come_may_be_asked_for_again(#[case] act: fn(&Value) -> Response, #[case] why: &str) {
    let server = Rude::lists(act);
    let client = client(&server.start().await);
    for times in 1..=2 {
        let error = client.list(PLENTY).await.unwrap_err();
        let Error::Unavailable { message, .. } = &error else { panic!("{error:?}") };
        assert!(message.contains(why), "{message}");
        assert_eq!(server.times("initialize"), times);
    }
}

/// A server that answers everything so.
async fn answering(answer: impl IntoResponse + Clone + Send + Sync + 'static) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    let router = axum::Router::new().fallback(move || async move { answer });
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

#[rstest]
#[case::temporary(307)]
#[case::permanent(308)]
#[case::found(302)]
#[tokio::test]
async fn a_redirect_is_told_and_neither_followed_nor_waited_for(#[case] status: u16) {
    let status = StatusCode::from_u16(status).unwrap();
    let url = answering((status, [("location", "/mcp/")])).await;
    let error = client(&url).list(PLENTY).await.unwrap_err();
    let message = format!(
        "it answered HTTP {}, which points to {url}/, and redirects are not followed: name the server by the address that it has",
        status.as_u16()
    );
    assert_eq!(error, Error::Refused { url, message });
}

#[rstest]
#[case::without(StatusCode::UNAUTHORIZED, true)]
#[case::forbidden(StatusCode::FORBIDDEN, true)]
#[case::with(StatusCode::UNAUTHORIZED, false)]
#[tokio::test]
async fn who_wants_credentials_is_waited_for_only_where_there_may_be_some(
    #[case] status: StatusCode,
    #[case] is_final: bool,
) {
    let client = client(&answering((status, "who are you?")).await);
    let client = if is_final { client.without_credentials() } else { client };
    let error = client.list(PLENTY).await.unwrap_err();
    assert!(error.to_string().ends_with(&format!("it answered HTTP {}: who are you?", status.as_u16())), "{error}");
    assert_eq!(matches!(error, Error::Refused { .. }), is_final, "{error:?}");
}

#[tokio::test]
async fn what_is_no_mcp_server_is_told_so() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let router = axum::Router::new().fallback(|| async { ([("content-type", "text/html")], "<h1>Welcome</h1>") });
    tokio::spawn(async move { axum::serve(listener, router).await });
    let error = client(&url).list(PLENTY).await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "the MCP server at {url} cannot be asked for its tools: it answered HTTP 200 with a body of type `text/html`"
        )
    );
}

#[tokio::test]
async fn a_server_that_never_answers_is_given_up_in_time() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let router = axum::Router::new().fallback(|| async { std::future::pending::<()>().await });
    tokio::spawn(async move { axum::serve(listener, router).await });
    let error = client(&url).list(Duration::from_millis(100)).await.unwrap_err();
    assert!(error.to_string().ends_with("it did not begin a session in time"), "{error}");
}
