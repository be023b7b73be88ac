//! Calls whose effect is recorded, and whose answer waits for a release.

use std::time::Duration;

use super::*;

#[rstest::rstest]
#[case::session(ClientLifecycleMode::Initialize)]
#[case::stateless(stateless())]
#[tokio::test]
async fn the_answer_waits_for_the_release_but_the_effect_does_not(#[case] lifecycle: ClientLifecycleMode) {
    let shop = shop().await;
    let client = connect(&shop.orders, lifecycle).await;
    let held = tokio::spawn(async move { client.call_tool(refund("HOLD-1", 17.90, "k1")).await });

    shop.until_effects(1).await;
    shop.release("HOLD-2").await;
    assert!(!held.is_finished());
    shop.release("HOLD-1").await;
    let result = held.await.unwrap().unwrap();
    assert_eq!(result.structured_content.unwrap()["status"], "refunded");
    assert_eq!(shop.summary().await.effects, 1);
}

#[rstest::rstest]
#[case::session(ClientLifecycleMode::Initialize)]
#[case::stateless(stateless())]
#[tokio::test]
async fn a_client_that_disconnects_leaves_one_effect_and_a_working_server(#[case] lifecycle: ClientLifecycleMode) {
    let shop = shop().await;
    let client = connect(&shop.orders, lifecycle.clone()).await;
    let disconnected = tokio::spawn(async move { client.call_tool(refund("HOLD-1", 17.90, "k1")).await });
    shop.until_effects(1).await;
    disconnected.abort();

    let next = connect(&shop.orders, lifecycle).await;
    next.call_tool(refund("A-1", 1.0, "k2")).await.unwrap();
    let summary = shop.summary().await;
    assert_eq!((summary.call_keys["k1"], summary.call_keys["k2"]), (1, 1));
}

#[rstest::rstest]
#[case::session(ClientLifecycleMode::Initialize)]
#[case::stateless(stateless())]
#[tokio::test]
async fn a_held_call_does_not_delay_the_stop_and_gets_no_answer(#[case] lifecycle: ClientLifecycleMode) {
    let shop = shop().await;
    let client = connect(&shop.orders, lifecycle).await;
    let held = tokio::spawn(async move { client.call_tool(refund("HOLD-1", 17.90, "k1")).await });
    shop.until_effects(1).await;

    // Fails if the server needs longer than its grace period.
    shop.orders.stop().await.unwrap();
    // A call with a session may not end: rmcp's client tries forever to resume the stream.
    if let Ok(ended) = tokio::time::timeout(Duration::from_millis(500), held).await {
        let ended = ended.unwrap();
        assert!(!matches!(ended, Ok(_) | Err(ServiceError::McpError(_))), "the server answered: {ended:?}");
    }
}

#[tokio::test]
async fn a_held_stateless_call_fails_at_once_when_the_server_stops() {
    let shop = shop().await;
    let client = connect(&shop.orders, stateless()).await;
    let held = tokio::spawn(async move { client.call_tool(refund("HOLD-1", 17.90, "k1")).await });
    shop.until_effects(1).await;

    shop.orders.stop().await.unwrap();
    let failed = held.await.unwrap().unwrap_err();
    assert!(matches!(failed, ServiceError::TransportSend(_)), "{failed:?}");
}

#[tokio::test]
async fn a_held_call_survives_a_restart_of_the_ledger() {
    let shop = shop().await;
    let client = session(&shop).await;
    let held = tokio::spawn(async move { client.call_tool(refund("HOLD-1", 17.90, "k1")).await });
    shop.until_effects(1).await;

    let Shop { orders: _orders, ledger, dir, .. } = shop;
    let addr = ledger.addr();
    ledger.stop().await.unwrap();
    let ledger = ledger::start(addr, dir.path()).await.unwrap();
    assert!(!held.is_finished());
    let url = format!("{}/holds/HOLD-1/release", ledger.url());
    crate::http::client().unwrap().post(url).send().await.unwrap();
    assert_eq!(held.await.unwrap().unwrap().is_error, Some(false));
}
