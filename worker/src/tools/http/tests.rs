use super::super::tests::call;
use super::super::{CoreTools, Error};
use super::response::MAX_BODY_BYTES;
use super::*;
use crate::focus::{DEFAULT_BUDGET_BYTES, FocusCache};
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Router, body};
use bloomery_crds::run::{KeyFile, ResourceSource};
use bloomery_crds::v1alpha1::ResourceType;
use bloomery_engine::Event;
use bloomery_journal::files::Disk;
use futures::stream;
use proptest::prelude::*;
use rstest::rstest;
use serde_json::{Value, json};
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;
use tokio::net::TcpListener;

/// A time limit that no call reaches.
const PLENTY: Duration = Duration::from_mins(1);

/// A request that an API received.
#[derive(Debug, Clone)]
struct Received {
    line: String,
    headers: HeaderMap,
    body: String,
}

impl Received {
    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().unwrap())
    }
}

type Respond = Arc<dyn Fn(&Received) -> Response + Send + Sync>;

/// An API that answers with a function of the request, and records the requests.
#[derive(Clone)]
struct Api {
    respond: Respond,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Api {
    /// Starts the API. Returns it and its URL.
    async fn start(respond: impl Fn(&Received) -> Response + Send + Sync + 'static) -> (Self, String) {
        bloomery_http::install_tls_provider();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let api = Self { respond: Arc::new(respond), received: Arc::default() };
        let router = Router::new().fallback(serve).with_state(api.clone());
        tokio::spawn(async move { axum::serve(listener, router).await });
        (api, url)
    }

    fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

async fn serve(State(api): State<Api>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = body::to_bytes(body, usize::MAX).await.unwrap();
    let received = Received {
        line: format!("{} {}", parts.method, parts.uri),
        headers: parts.headers,
        body: String::from_utf8(body.to_vec()).unwrap(),
    };
    api.received.lock().unwrap().push(received.clone());
    (api.respond)(&received)
}

/// Returns the core tools of a Job that binds the endpoint `shop`, whose rules allow every call.
fn tools(url: &str, auth: &Value, key: Option<&Path>, addresses: AddressPolicy, redactor: &Redactor) -> CoreTools {
    let methods = json!(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"]);
    let declared: Vec<ResourceDeclaration> = serde_json::from_value(json!([
        {"name": "shop", "type": "api_endpoint", "auth": auth, "rules": [{"methods": methods, "paths": ["/**"]}]},
        {"name": "key", "type": "credential"},
    ]))
    .unwrap();
    let bound = |name: &str, kind, source| BoundResource { name: name.into(), kind, source };
    let mut resources = vec![bound("shop", ResourceType::ApiEndpoint, ResourceSource::Value(url.into()))];
    if let Some(path) = key {
        let file = KeyFile { path: path.to_str().unwrap().into(), secret: "shop".into(), key: "key".into() };
        resources.push(bound("key", ResourceType::Credential, ResourceSource::Secret(file)));
    }
    let focus = FocusCache::new(Path::new("/nonexistent"), "uid-1", DEFAULT_BUDGET_BYTES);
    CoreTools::new(&resources, focus).with_endpoints(&declared, &resources, addresses, redactor.clone())
}

fn local(url: &str) -> CoreTools {
    tools(url, &json!(null), None, AddressPolicy::for_local_machine(), &Redactor::default())
}

async fn call_tool(tools: &CoreTools, tool: &str, arguments: &Value) -> Event {
    call_tool_within(tools, tool, arguments, PLENTY).await
}

async fn call_tool_within(tools: &CoreTools, tool: &str, arguments: &Value, within: Duration) -> Event {
    call(tools, tool, &arguments.to_string(), within, &Disk).await
}

fn text(event: Event) -> Result<String, Error> {
    match event {
        Event::ToolCompleted { text, .. } => Ok(text),
        Event::ToolFailed { text, .. } => Err(Error::Failed(text)),
        Event::ToolIndeterminate { text, .. } => Err(Error::Indeterminate(text)),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn failed(event: Event) -> String {
    match text(event) {
        Err(Error::Failed(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn indeterminate(event: Event) -> String {
    match text(event) {
        Err(Error::Indeterminate(text)) => text,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn an_api_is_read_and_called() {
    let (api, url) = Api::start(|received| {
        let headers =
            [(header::CONTENT_TYPE, "application/json"), (header::ETAG, "\"1\""), (header::SET_COOKIE, "a=b")];
        let status = if received.line.starts_with("POST") { StatusCode::CREATED } else { StatusCode::OK };
        (status, headers, format!("{{\"asked\":\"{}\"}}", received.line)).into_response()
    })
    .await;
    let shop = local(&format!("{url}/v1"));
    let read =
        call_tool(&shop, HTTP_GET, &json!({"path": "/orders/7", "query": {"q": "a b"}, "headers": {"Accept": "x/y"}}))
            .await;
    let head = "content-type: application/json\ncontent-length: 36\netag: \"1\"\n";
    assert_eq!(text(read), Ok(format!("HTTP 200 OK\n{head}\n{{\"asked\":\"GET /v1/orders/7?q=a%20b\"}}")));
    let made = call_tool(&shop, HTTP_REQUEST, &json!({"method": "POST", "path": "/orders", "json": {"sku": 1}})).await;
    assert!(text(made).unwrap().starts_with("HTTP 201 Created\n"));
    let [read, made] = api.received().try_into().unwrap();
    assert_eq!((read.header("accept"), read.header("idempotency-key"), read.body.as_str()), (Some("x/y"), None, ""));
    let key = bloomery_crds::Digest::of_bytes(b"").to_string();
    assert_eq!(
        (made.header("content-type"), made.header("idempotency-key")),
        (Some("application/json"), Some(key.as_str()))
    );
    assert_eq!((made.line.as_str(), made.body.as_str()), ("POST /v1/orders", r#"{"sku":1}"#));

    let own = json!({"method": "PUT", "path": "/a", "body": "x", "headers": {"Idempotency-Key": "mine"}});
    call_tool(&shop, HTTP_REQUEST, &own).await;
    assert_eq!(api.received()[2].header("idempotency-key"), Some("mine"));
}

#[tokio::test]
async fn a_forbidden_request_is_not_sent_even_if_the_gate_allowed_it() {
    let (api, url) = Api::start(|_| "hello".into_response()).await;
    let shop = local(&url);
    for (tool, arguments) in [
        (HTTP_GET, json!({"path": "/../a"})),
        (HTTP_GET, json!({"method": "POST", "path": "/a"})),
        (HTTP_REQUEST, json!({"path": "/a"})),
        (HTTP_REQUEST, json!({"method": "GET", "path": "/a"})),
        (HTTP_GET, json!({"path": "/a", "headers": {"Host": "evil.example"}})),
        (HTTP_GET, json!({"path": "/a", "resource": "docs"})),
    ] {
        let why = failed(call_tool(&shop, tool, &arguments).await);
        assert!(why.starts_with("Nothing was sent: "), "{why}");
    }
    assert_eq!(api.received().len(), 0);
}

#[rstest]
#[case::found(StatusCode::FOUND)]
#[case::with_the_method(StatusCode::TEMPORARY_REDIRECT)]
#[case::for_ever(StatusCode::PERMANENT_REDIRECT)]
#[tokio::test]
async fn a_redirect_is_shown_and_not_followed(#[case] status: StatusCode) {
    let (api, url) =
        Api::start(move |_| (status, [(header::LOCATION, "http://169.254.169.254/x")]).into_response()).await;
    for (tool, arguments) in [(HTTP_GET, json!({})), (HTTP_REQUEST, json!({"method": "POST", "json": {}}))] {
        let answer = text(call_tool(&local(&url), tool, &arguments).await).unwrap();
        assert!(answer.contains("location: http://169.254.169.254/x\n[Redirects are not followed.]"), "{answer}");
    }
    assert_eq!(api.received().len(), 2);
}

#[rstest]
#[case::bad(400)]
#[case::not_found(404)]
#[case::conflict(409)]
#[case::too_many(429)]
#[tokio::test]
async fn a_client_error_fails_the_call_with_the_response(#[case] status: u16) {
    let status = StatusCode::from_u16(status).unwrap();
    let (_, url) = Api::start(move |_| (status, [(header::RETRY_AFTER, "7")], "no such order").into_response()).await;
    for (tool, method) in [(HTTP_GET, "GET"), (HTTP_REQUEST, "POST")] {
        let answer = failed(call_tool(&local(&url), tool, &json!({"method": method})).await);
        assert!(
            answer.starts_with(&format!("HTTP {}", status.as_u16())) && answer.contains("retry-after: 7\n"),
            "{answer}"
        );
        assert!(answer.ends_with("no such order"), "{answer}");
    }
}

#[tokio::test]
async fn a_server_error_makes_a_request_with_an_effect_indeterminate() {
    let (_, url) = Api::start(|_| (StatusCode::BAD_GATEWAY, "upstream is gone").into_response()).await;
    let shop = local(&url);
    let lost = indeterminate(call_tool(&shop, HTTP_REQUEST, &json!({"method": "DELETE"})).await);
    assert!(lost.contains("did not confirm it: it answered HTTP 502 Bad Gateway"), "{lost}");
    assert!(lost.contains("upstream is gone"), "{lost}");
    for method in ["GET", "HEAD"] {
        let answer = failed(call_tool(&shop, HTTP_GET, &json!({"method": method})).await);
        assert!(answer.starts_with("HTTP 502 Bad Gateway"), "{answer}");
    }
}

/// Starts a server that writes these bytes as the answer to each request, and closes the connection. Returns its URL.
async fn raw(answer: &'static [u8]) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 4096];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(answer).await;
            let _ = stream.shutdown().await;
        }
    });
    bloomery_http::install_tls_provider();
    url
}

#[rstest]
#[case::closed(b"")]
#[case::no_http(b"SSH-2.0-OpenSSH_9.6\r\n")]
#[case::half_a_head(b"HTTP/1.1 200 OK\r\nContent-")]
#[case::two_lengths(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab")]
#[tokio::test]
async fn a_broken_connection_makes_a_request_with_an_effect_indeterminate(#[case] answer: &'static [u8]) {
    let shop = local(&raw(answer).await);
    let lost = indeterminate(call_tool(&shop, HTTP_REQUEST, &json!({"method": "POST"})).await);
    assert!(
        lost.starts_with("the request may have had an effect, because the endpoint did not confirm it: "),
        "{lost}"
    );
    let answer = failed(call_tool(&shop, HTTP_GET, &json!({})).await);
    assert!(answer.starts_with("The endpoint did not answer: ") && answer.ends_with("you may repeat it."), "{answer}");
}

/// The status in the head decides the outcome of a call with effect, even if the body is lost. A read without its body has failed.
#[tokio::test]
async fn a_cut_body_is_marked() {
    let shop = local(&raw(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf a sec").await);
    let answer = text(call_tool(&shop, HTTP_REQUEST, &json!({"method": "POST"})).await).unwrap();
    assert!(answer.starts_with("HTTP 200 OK\n") && answer.contains("[the answer was cut off: "), "{answer}");
    assert!(!answer.contains("half a sec"), "{answer}");
    let answer = failed(call_tool(&shop, HTTP_GET, &json!({})).await);
    assert!(answer.contains("[the answer was cut off: "), "{answer}");
}

#[tokio::test]
async fn an_unreachable_endpoint_fails_the_call() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    bloomery_http::install_tls_provider();
    let why = failed(call_tool(&local(&url), HTTP_REQUEST, &json!({"method": "POST"})).await);
    assert!(why.starts_with("Nothing was sent: ") && why.contains("refused"), "{why}");
}

#[tokio::test]
async fn a_missing_answer_ends_the_call_after_the_time_limit() {
    let (_, url) =
        Api::start(|_| Body::from_stream(stream::pending::<Result<Bytes, Infallible>>()).into_response()).await;
    let silent = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (slow, silent) = (local(&url), local(&format!("http://{}", silent.local_addr().unwrap())));
    let within = Duration::from_millis(100);
    let method_of = |tool| if tool == HTTP_GET { "GET" } else { "POST" };
    let call =
        |tools, tool| async move { call_tool_within(tools, tool, &json!({"method": method_of(tool)}), within).await };
    assert!(failed(call(&silent, HTTP_GET).await).contains("no answer in time"));
    assert!(indeterminate(call(&silent, HTTP_REQUEST).await).contains("no answer in time"));
    // The slow API has sent the head of its response.
    assert!(failed(call(&slow, HTTP_GET).await).contains("[the answer was cut off: no answer in time]"));
    assert!(text(call(&slow, HTTP_REQUEST).await).unwrap().contains("[the answer was cut off: no answer in time]"));
}

#[tokio::test]
async fn a_body_is_read_up_to_a_limit() {
    let (_, url) = Api::start(|received| {
        let bytes = if received.line.ends_with("/fits") { MAX_BODY_BYTES } else { 10 * 1024 * 1024 };
        if received.line.ends_with("/endless") {
            let chunks = stream::repeat_with(|| Ok::<_, Infallible>(Bytes::from_static(&[b'x'; 8 * 1024])));
            return Body::from_stream(chunks).into_response();
        }
        "x".repeat(bytes).into_response()
    })
    .await;
    let shop = local(&url);
    let fits = text(call_tool(&shop, HTTP_GET, &json!({"path": "/fits"})).await).unwrap();
    assert!(fits.len() > MAX_BODY_BYTES && fits.len() < MAX_BODY_BYTES + 200);
    let head = text(call_tool(&shop, HTTP_GET, &json!({"method": "HEAD", "path": "/large"})).await).unwrap();
    assert!(head.ends_with("content-length: 10485760\n"), "{head}");
    for path in ["/large", "/endless"] {
        let answer = failed(call_tool(&shop, HTTP_GET, &json!({"path": path})).await);
        assert!(answer.contains("[the answer is larger than 1048576 bytes, so it was not read."), "{answer}");
        let answer = text(call_tool(&shop, HTTP_REQUEST, &json!({"method": "POST", "path": path})).await).unwrap();
        assert!(answer.starts_with("HTTP 200 OK\n") && answer.len() < 1024, "{answer}");
    }
}

#[rstest]
#[case::an_image("image/png", b"\x89PNG\r\n\x1a\n\xff\xff")]
#[case::zeros("text/plain", b"a\0b")]
#[case::another_charset("text/plain; charset=iso-8859-1", b"gr\xfc\xdfe")]
#[tokio::test]
async fn a_body_that_is_not_text_is_not_shown(#[case] kind: &'static str, #[case] body: &'static [u8]) {
    let (_, url) = Api::start(move |_| ([(header::CONTENT_TYPE, kind)], body).into_response()).await;
    let answer = text(call_tool(&local(&url), HTTP_GET, &json!({})).await).unwrap();
    assert!(
        answer.ends_with(&format!("[The body of {} bytes ({kind}) is not text and is not shown.]", body.len())),
        "{answer}"
    );
}

/// The API would store the mark as the value.
#[tokio::test]
async fn a_body_with_a_mark_is_not_sent() {
    let (api, url) = Api::start(|_| "kept".into_response()).await;
    let redactor = Redactor::default();
    redactor.learn("key", b"first-secret");
    let shop = tools(&url, &json!(null), None, AddressPolicy::for_local_machine(), &redactor);
    for body in [json!({"json": {"key": "[redacted: key]"}}), json!({"body": "key=[redacted: key]"})] {
        let mut arguments = json!({"method": "PUT", "path": "/settings"});
        arguments.as_object_mut().unwrap().extend(body.as_object().unwrap().clone());
        let why = failed(call_tool(&shop, HTTP_REQUEST, &arguments).await);
        assert!(why.starts_with("Nothing was sent: the body contains `[redacted: key]`"), "{why}");
    }
    assert!(api.received().is_empty());
    text(
        call_tool(&shop, HTTP_REQUEST, &json!({"method": "PUT", "path": "/settings", "body": "[redacted: it]"})).await,
    )
    .unwrap();
}

#[tokio::test]
async fn a_credential_is_sent_as_the_skill_declares_and_read_again_for_each_call() {
    let (api, url) = Api::start(|received| format!("you are {:?}", received.headers).into_response()).await;
    let dir = tempfile::tempdir().unwrap();
    let key = dir.path().join("key");
    let redactor = Redactor::default();
    let with = |auth: Value| tools(&url, &auth, Some(&key), AddressPolicy::for_local_machine(), &redactor);
    let shop = with(json!({"credential": "key", "scheme": "Bearer"}));
    let why = failed(call_tool(&shop, HTTP_GET, &json!({})).await);
    assert!(
        why.starts_with("Nothing was sent: the credential `key` needs the key `key` of the Secret `shop`"),
        "{why}"
    );
    std::fs::write(&key, "first-secret\n").unwrap();
    call_tool(&shop, HTTP_GET, &json!({})).await;
    std::fs::write(&key, "second-secret").unwrap();
    let echoed = text(call_tool(&shop, HTTP_GET, &json!({})).await).unwrap();
    call_tool(&with(json!({"credential": "key", "header": "X-Api-Key"})), HTTP_GET, &json!({})).await;
    let received = api.received();
    assert_eq!(received[0].header("authorization"), Some("Bearer first-secret"));
    assert_eq!(received[1].header("authorization"), Some("Bearer second-secret"));
    assert_eq!((received[2].header("x-api-key"), received[2].header("authorization")), (Some("second-secret"), None));
    // Both versions are redacted, although the file has only the last one.
    for secret in ["first-secret", "second-secret"] {
        assert_eq!(redactor.redact_text(secret), "[redacted: key]");
    }
    assert!(redactor.redact_text(&echoed).contains("Bearer [redacted: key]"), "{echoed}");
    std::fs::write(&key, "1234567\n").unwrap();
    let why = failed(call_tool(&shop, HTTP_GET, &json!({})).await);
    assert!(why.contains("`key` has fewer than 8 bytes") && !why.contains("1234567"), "{why}");
    std::fs::write(&key, "two\nlines-of-it").unwrap();
    let why = failed(call_tool(&shop, HTTP_GET, &json!({})).await);
    assert!(why.contains("not allowed in HTTP headers") && !why.contains("lines-of-it"), "{why}");
}

#[tokio::test]
async fn a_cut_answer_does_not_contain_a_part_of_a_secret() {
    let secret = "a-secret-that-is-long-enough";
    let long = format!("{}{secret}", "x".repeat(1024 - 40));
    let (_, url) = Api::start(move |_| (StatusCode::BAD_GATEWAY, [(header::ETAG, long.clone())]).into_response()).await;
    let redactor = Redactor::default();
    redactor.learn("token", secret.as_bytes());
    let shop = tools(&url, &json!(null), None, AddressPolicy::for_local_machine(), &redactor);
    for answer in [
        failed(call_tool(&shop, HTTP_GET, &json!({})).await),
        indeterminate(call_tool(&shop, HTTP_REQUEST, &json!({"method": "POST"})).await),
    ] {
        assert!(!answer.contains("a-sec"), "{answer}");
    }
}

#[tokio::test]
async fn a_pod_sends_nothing_to_a_forbidden_address() {
    let (api, url) = Api::start(|_| "hello".into_response()).await;
    let port = url.rsplit(':').next().unwrap();
    for host in ["127.0.0.1", "[::1]", "0x7f.1", "2130706433", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254"] {
        let addresses = AddressPolicy::for_pod("acme", vec!["10.0.0.0/8".parse().unwrap()]);
        let shop = tools(&format!("http://{host}:{port}"), &json!(null), None, addresses, &Redactor::default());
        let why = failed(call_tool(&shop, HTTP_REQUEST, &json!({"method": "POST"})).await);
        assert!(why.starts_with("Nothing was sent: ") && why.contains("worker.endpointRanges"), "{host}: {why}");
    }
    for host in ["localhost", "shop.other.svc", "kubernetes.default"] {
        let addresses = AddressPolicy::for_pod("acme", vec!["127.0.0.0/8".parse().unwrap()]);
        let shop = tools(&format!("http://{host}:{port}"), &json!(null), None, addresses, &Redactor::default());
        let why = failed(call_tool(&shop, HTTP_REQUEST, &json!({"method": "POST"})).await);
        assert!(why.starts_with("Nothing was sent: "), "{host}: {why}");
    }
    assert_eq!(api.received().len(), 0);
    let listed = AddressPolicy::for_pod("acme", vec!["127.0.0.0/8".parse().unwrap()]);
    let answer = call_tool(&tools(&url, &json!(null), None, listed, &Redactor::default()), HTTP_GET, &json!({})).await;
    assert!(text(answer).unwrap().ends_with("hello"));
}

#[tokio::test]
async fn concurrent_reads_receive_their_own_answers() {
    let (api, url) = Api::start(|received| received.line.clone().into_response()).await;
    let shop = local(&url);
    let calls = (0..8).map(|n| {
        let shop = &shop;
        async move { text(call_tool(shop, HTTP_GET, &json!({"path": format!("/{n}")})).await).unwrap() }
    });
    let answer = futures::future::join_all(calls).await;
    assert!(answer.iter().enumerate().all(|(n, answer)| answer.ends_with(&format!("GET /{n}"))), "{answer:?}");
    assert_eq!(api.received().len(), 8);
}

proptest! {
    /// The URL parser of the client does not change a planned URL: it has the same origin, and a path below the base.
    #[test]
    fn the_client_reads_a_url_as_it_was_planned(path in "(\\PC|\\.|/|%2e|%|;|@|:|\\\\| ){0,16}", value in "\\PC{0,8}") {
        let declared: Vec<ResourceDeclaration> =
            serde_json::from_value(json!([{"name": "shop", "type": "api_endpoint"}])).unwrap();
        let source = ResourceSource::Value("https://x.example:8443/v1".into());
        let bound = [BoundResource { name: "shop".into(), kind: ResourceType::ApiEndpoint, source }];
        let endpoints = endpoint::endpoints(&declared, &bound);
        let plan = |path: &str| endpoint::build_request(&endpoints, &json!({"path": path, "query": {"q": value}}), true);
        let planned = plan(&path).or_else(|fault| plan(fault.to_string().rsplit(' ').next().unwrap_or_default()));
        if let Ok(planned) = planned {
            let url = reqwest::Url::parse(&planned.url).unwrap();
            prop_assert_eq!(url.as_str(), planned.url.as_str());
            prop_assert_eq!((url.host_str(), url.port(), url.username()), (Some("x.example"), Some(8443), ""));
            prop_assert!(url.path() == "/v1" || url.path().starts_with("/v1/"), "{}", url);
            prop_assert!(!url.path_segments().unwrap().any(|segment| matches!(segment, "." | "..")));
        }
    }
}
