//! The ledger over real HTTP and a real directory.

use serde_json::{Value, json};

use super::*;

const ANY_PORT: ([u8; 4], u16) = ([127, 0, 0, 1], 0);

fn effect(key: &str, order: &str) -> Value {
    json!({"callKey": key, "tool": "process_refund", "order": order, "amount": 49.90, "tenant": "acme"})
}

async fn post(url: String, body: &Value) -> (u16, Value) {
    let answer = crate::http::client().unwrap().post(url).json(body).send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

async fn fetch(url: String) -> Value {
    crate::http::client().unwrap().get(url).send().await.unwrap().json().await.unwrap()
}

#[tokio::test]
async fn an_answer_counts_the_effects_of_its_call_key() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = start(ANY_PORT.into(), dir.path()).await.unwrap();
    let effects = format!("{}/effects", ledger.url());

    assert_eq!(post(effects.clone(), &effect("k1", "A-17")).await, (200, json!({"seq": 1, "seen": 1})));
    assert_eq!(post(effects.clone(), &effect("k2", "A-18")).await, (200, json!({"seq": 2, "seen": 1})));
    assert_eq!(post(effects, &effect("k1", "A-17")).await, (200, json!({"seq": 3, "seen": 2})));
}

#[tokio::test]
async fn an_effect_without_a_key_is_counted_separately() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = start(ANY_PORT.into(), dir.path()).await.unwrap();
    let keyless = json!({"tool": "process_refund", "order": "A-1", "amount": 17.9});
    post(format!("{}/effects", ledger.url()), &keyless).await;
    let second = post(format!("{}/effects", ledger.url()), &keyless).await;

    assert_eq!(second, (200, json!({"seq": 2, "seen": 1})));
    let summary = fetch(format!("{}/effects/summary", ledger.url())).await;
    assert_eq!(
        summary,
        json!({"effects": 2, "orders": {"A-1": {"effects": 2, "callKeys": {}}}, "callKeys": {}, "withoutCallKey": 2})
    );
}

#[tokio::test]
async fn the_summary_counts_by_order_and_key_and_can_be_limited_to_a_tenant() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = start(ANY_PORT.into(), dir.path()).await.unwrap();
    for body in [effect("k1", "A-17"), effect("k1", "A-17"), effect("k2", "A-18")] {
        post(format!("{}/effects", ledger.url()), &body).await;
    }
    let mut foreign = effect("k3", "A-17");
    foreign["tenant"] = json!("globex");
    post(format!("{}/effects", ledger.url()), &foreign).await;

    let summary = fetch(format!("{}/effects/summary?tenant=acme", ledger.url())).await;
    assert_eq!(
        summary,
        json!({
            "effects": 3,
            "orders": {
                "A-17": {"effects": 2, "callKeys": {"k1": 2}},
                "A-18": {"effects": 1, "callKeys": {"k2": 1}},
            },
            "callKeys": {"k1": 2, "k2": 1},
            "withoutCallKey": 0,
        })
    );
    let all = fetch(format!("{}/effects", ledger.url())).await;
    assert_eq!(all["effects"].as_array().unwrap().len(), 4);
    assert_eq!(all["effects"][3], foreign);
}

#[tokio::test]
async fn effects_and_releases_survive_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let before = start(ANY_PORT.into(), dir.path()).await.unwrap();
    post(format!("{}/effects", before.url()), &effect("k1", "HOLD-1")).await;
    post(format!("{}/holds/HOLD-1/release", before.url()), &json!({})).await;
    before.stop().await.unwrap();

    let after = start(ANY_PORT.into(), dir.path()).await.unwrap();
    assert_eq!(
        post(format!("{}/effects", after.url()), &effect("k1", "HOLD-1")).await,
        (200, json!({"seq": 2, "seen": 2}))
    );
    assert_eq!(fetch(format!("{}/holds/HOLD-1", after.url())).await, json!({"released": true}));
}

#[tokio::test]
async fn an_incomplete_last_line_is_removed_at_the_start() {
    let dir = tempfile::tempdir().unwrap();
    let before = start(ANY_PORT.into(), dir.path()).await.unwrap();
    post(format!("{}/effects", before.url()), &effect("k1", "A-17")).await;
    before.stop().await.unwrap();
    let path = dir.path().join("ledger.jsonl");
    let mut torn = std::fs::read(&path).unwrap();
    torn.extend_from_slice(br#"{"effect":{"callKey":"k2","#);
    std::fs::write(&path, torn).unwrap();

    let after = start(ANY_PORT.into(), dir.path()).await.unwrap();
    post(format!("{}/effects", after.url()), &effect("k3", "A-18")).await;
    after.stop().await.unwrap();

    let again = start(ANY_PORT.into(), dir.path()).await.unwrap();
    let summary = fetch(format!("{}/effects/summary", again.url())).await;
    assert_eq!(summary["callKeys"], json!({"k1": 1, "k3": 1}));
}

#[tokio::test]
async fn an_invalid_journal_prevents_the_start() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("ledger.jsonl"), "{\"effect\":{}}\n").unwrap();

    let error = start(ANY_PORT.into(), dir.path()).await.unwrap_err().to_string();
    assert!(error.contains("ledger.jsonl: line 1: missing field `tool`"), "{error}");
}

#[tokio::test]
async fn a_hold_waits_until_its_order_is_released() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = start(ANY_PORT.into(), dir.path()).await.unwrap();
    let url = ledger.url();
    let waiting = tokio::spawn(fetch(format!("{url}/holds/HOLD-1")));

    // The release of another order does not end the wait.
    post(format!("{url}/holds/HOLD-2/release"), &json!({})).await;
    assert_eq!(fetch(format!("{url}/holds/HOLD-2")).await, json!({"released": true}));
    assert!(!waiting.is_finished());

    post(format!("{url}/holds/HOLD-1/release"), &json!({})).await;
    assert_eq!(waiting.await.unwrap(), json!({"released": true}));
}

#[tokio::test]
async fn a_request_that_waits_at_a_hold_does_not_delay_the_stop() {
    let dir = tempfile::tempdir().unwrap();
    let ledger = start(ANY_PORT.into(), dir.path()).await.unwrap();
    // An HTTP client returns nothing before the answer begins, so the test cannot see when its request is sent. A plain
    // connection shows this.
    let mut waiting = tokio::net::TcpStream::connect(ledger.addr()).await.unwrap();
    let request = format!("GET /holds/HOLD-1 HTTP/1.1\r\nhost: {}\r\n\r\n", ledger.addr());
    tokio::io::AsyncWriteExt::write_all(&mut waiting, request.as_bytes()).await.unwrap();
    fetch(format!("{}/effects", ledger.url())).await;

    ledger.stop().await.unwrap();
    let mut answer = Vec::new();
    tokio::io::AsyncReadExt::read_to_end(&mut waiting, &mut answer).await.unwrap();
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.is_empty() || answer.ends_with(r#"{"released":false}"#), "{answer}");
}

#[rstest::rstest]
#[case::no_order(json!({"callKey": "k", "tool": "t", "amount": 1}), "missing field `order`")]
#[case::empty_key(json!({"callKey": "", "tool": "t", "order": "A-1", "amount": 1}), "callKey: must not be empty")]
#[case::unknown_field(json!({"tool": "t", "order": "A-1", "amount": 1, "sum": 1}), "unknown field `sum`")]
#[tokio::test]
async fn an_invalid_effect_is_refused(#[case] body: Value, #[case] why: &str) {
    let dir = tempfile::tempdir().unwrap();
    let ledger = start(ANY_PORT.into(), dir.path()).await.unwrap();

    let (status, answer) = post(format!("{}/effects", ledger.url()), &body).await;
    assert_eq!(status, 400);
    assert!(answer["error"].as_str().unwrap().contains(why), "{answer}");
    assert_eq!(fetch(format!("{}/effects", ledger.url())).await, json!({"effects": []}));
}
