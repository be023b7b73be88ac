//! Protocol versions, and the hosts and origins that the server accepts.

use super::*;

async fn post(orders: &Running, headers: &[(&str, &str)], body: &Value) -> reqwest::Response {
    let mut request = crate::http::client()
        .unwrap()
        .post(format!("{}/mcp", orders.url()))
        .header("accept", "application/json, text/event-stream")
        .json(body);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.send().await.unwrap()
}

fn initialize(version: &str) -> Value {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "initialize",
        "params": {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
    })
}

fn request(method: &str, mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
    params["_meta"]["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
    params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({});
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

/// Returns the first JSON message of a stream of events.
async fn event(answer: reqwest::Response) -> Value {
    let text = answer.text().await.unwrap();
    let mut data = text.lines().filter_map(|line| line.strip_prefix("data:")).map(str::trim);
    data.find_map(|data| serde_json::from_str(data).ok()).unwrap_or_else(|| panic!("{text}"))
}

#[rstest::rstest]
#[case("2024-11-05", "2024-11-05")]
#[case("2025-03-26", "2025-03-26")]
#[case("2025-06-18", "2025-06-18")]
#[case("2025-11-25", "2025-11-25")]
#[case::version_without_a_handshake("2026-07-28", "2025-11-25")]
#[case::unknown("1999-01-01", "2025-11-25")]
#[tokio::test]
async fn the_handshake_agrees_on_a_version_and_creates_a_session(#[case] requested: &str, #[case] agreed: &str) {
    let shop = shop().await;
    let answer = post(&shop.orders, &[], &initialize(requested)).await;

    assert_eq!(answer.status(), 200);
    assert!(answer.headers().contains_key("mcp-session-id"));
    assert_eq!(event(answer).await["result"]["protocolVersion"], agreed);
}

#[tokio::test]
async fn discovery_lists_every_version_without_a_session() {
    let shop = shop().await;
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "server/discover")];
    let answer = post(&shop.orders, &headers, &request("server/discover", json!({}))).await;

    assert_eq!(answer.status(), 200);
    assert!(!answer.headers().contains_key("mcp-session-id"));
    let body: Value = answer.json().await.unwrap();
    assert_eq!(
        body["result"]["supportedVersions"],
        json!(["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28"])
    );
}

#[tokio::test]
async fn a_stateless_call_is_one_request_and_one_json_answer() {
    let shop = shop().await;
    let headers =
        [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "process_refund")];
    let mut params = json!({"name": "process_refund", "arguments": {"order_id": "A-17", "amount": 1.5}});
    params["_meta"]["bloomery.dev/callKey"] = json!("k1");
    let answer = post(&shop.orders, &headers, &request("tools/call", params)).await;

    assert_eq!(answer.headers()["content-type"], "application/json");
    let body: Value = answer.json().await.unwrap();
    assert_eq!(body["result"]["structuredContent"]["status"], "refunded", "{body}");
    assert_eq!(shop.summary().await.call_keys["k1"], 1);
}

#[tokio::test]
async fn the_client_of_rmcp_agrees_on_the_expected_version() {
    let shop = shop().await;
    let auto =
        ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::V_2026_07_28], legacy_version: None };
    for (lifecycle, version) in [
        (auto, ProtocolVersion::V_2026_07_28),
        (stateless(), ProtocolVersion::V_2026_07_28),
        (ClientLifecycleMode::Initialize, ProtocolVersion::V_2025_11_25),
    ] {
        let client = connect(&shop.orders, lifecycle).await;
        assert_eq!(client.peer_info().unwrap().protocol_version, version);
        assert_eq!(client.list_all_tools().await.unwrap().len(), 4);
    }
}

#[rstest::rstest]
#[case::service("orders.acme.svc:8080")]
#[case::service_without_port("cs-tier-1.acme.svc")]
#[case::address("10.96.12.7:8080")]
#[tokio::test]
async fn every_host_is_accepted_by_default(#[case] host: &str) {
    let shop = shop().await;
    let answer = post(&shop.orders, &[("host", host)], &initialize("2025-06-18")).await;
    assert_eq!(answer.status(), 200);
}

#[tokio::test]
async fn only_the_allowed_hosts_are_accepted() {
    let options = Options { allowed_hosts: vec!["orders.acme.svc".to_owned()], ..Options::default() };
    let orders = start(any_port(), options).await.unwrap();

    let named = post(&orders, &[("host", "orders.acme.svc:8080")], &initialize("2025-06-18")).await;
    assert_eq!(named.status(), 200);
    let other = post(&orders, &[("host", "evil.example")], &initialize("2025-06-18")).await;
    assert_eq!(other.status(), 403);
}

#[tokio::test]
async fn a_result_can_be_larger_than_any_client_reads() {
    let shop = shop().await;
    let headers = [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", "track_order")];
    let params = json!({"name": "track_order", "arguments": {"order_id": "ENDLESS-1"}});
    let mut answer = post(&shop.orders, &headers, &request("tools/call", params)).await;
    let mut read = 0;
    while read < 16 * 1024 * 1024 {
        read += answer.chunk().await.unwrap().expect("the result has not ended").len();
    }
}

#[tokio::test]
async fn a_request_from_a_browser_is_refused() {
    let shop = shop().await;
    let answer = post(&shop.orders, &[("origin", "http://evil.example")], &initialize("2025-06-18")).await;
    assert_eq!(answer.status(), 403);
}
