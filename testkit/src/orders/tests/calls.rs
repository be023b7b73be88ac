//! The answers of the tools, and the effects that reach the ledger.

use super::*;

#[tokio::test]
async fn the_catalogue() {
    let shop = shop().await;
    let tools = session(&shop).await.list_all_tools().await.unwrap();
    insta::assert_json_snapshot!(tools);
}

#[rstest::rstest]
#[case::verified("verify_identity", json!({"order_id": "A-17", "email": " Customer-17@example.com"}), json!({"order_id": "A-17", "verified": true}))]
#[case::not_verified("verify_identity", json!({"order_id": "A-17", "email": "customer-18@example.com"}), json!({"order_id": "A-17", "verified": false}))]
#[case::eligible("check_eligibility", json!({"order_id": "A-17"}), json!({"order_id": "A-17", "eligible": true, "amount": 49.9, "currency": "EUR"}))]
#[case::not_eligible("check_eligibility", json!({"order_id": "B-17"}), json!({"order_id": "B-17", "eligible": false, "reason": "the return window is over", "amount": 49.9, "currency": "EUR"}))]
#[case::tracked("track_order", json!({"order_id": "C-1"}), json!({"order_id": "C-1", "status": "in_transit"}))]
#[tokio::test]
async fn a_read_only_tool_has_no_effect_and_answers_as_structured_content_and_as_text(
    #[case] tool: &'static str,
    #[case] arguments: Value,
    #[case] answer: Value,
) {
    let shop = shop().await;
    let result = session(&shop).await.call_tool(call(tool, &arguments)).await.unwrap();

    assert_eq!(result.is_error, Some(false));
    assert_eq!(result.structured_content.as_ref(), Some(&answer));
    let text = &result.content[0].as_text().unwrap().text;
    assert_eq!(serde_json::from_str::<Value>(text).unwrap(), answer);
    assert_eq!(shop.summary().await, Summary::default());
}

#[tokio::test]
async fn an_answered_refund_is_in_the_ledger_with_its_key_and_tenant() {
    let shop = shop().await;
    let result = session(&shop).await.call_tool(refund("A-17", 49.90, "k1")).await.unwrap();

    assert_eq!(
        result.structured_content,
        Some(json!({"order_id": "A-17", "refund_id": "R-1", "amount": 49.9, "currency": "EUR", "status": "refunded"}))
    );
    let url = format!("{}/effects", shop.ledger.url());
    let effects: Value = crate::http::client().unwrap().get(url).send().await.unwrap().json().await.unwrap();
    assert_eq!(
        effects["effects"],
        json!([{"callKey": "k1", "tool": "process_refund", "order": "A-17", "amount": 49.9, "tenant": "acme"}])
    );
}

#[tokio::test]
async fn a_call_that_is_sent_twice_has_two_effects() {
    let shop = shop().await;
    let client = session(&shop).await;
    client.call_tool(refund("A-17", 10.0, "k1")).await.unwrap();
    client.call_tool(refund("A-17", 10.0, "k1")).await.unwrap();

    assert_eq!(shop.summary().await.call_keys["k1"], 2);
}

#[tokio::test]
async fn an_effect_without_a_call_key_is_counted_separately() {
    let shop = shop().await;
    let params = call("process_refund", &json!({"order_id": "A-17", "amount": 10}));
    session(&shop).await.call_tool(params).await.unwrap();

    assert_eq!(shop.summary().await.without_call_key, 1);
}

#[rstest::rstest]
#[case::unknown(json!({"order_id": "Z-1", "amount": 1}), "There is no order Z-1")]
#[case::not_eligible(json!({"order_id": "B-1", "amount": 1}), "Order B-1 cannot be refunded: the return window is over")]
#[case::too_much(json!({"order_id": "A-17", "amount": 50}), "at most the 49.90 EUR")]
#[case::nothing(json!({"order_id": "A-17", "amount": 0}), "more than 0")]
#[case::missing(json!({"order_id": "A-17"}), "missing field `amount`")]
#[case::unknown_field(json!({"order_id": "A-17", "amount": 1, "force": true}), "unknown field `force`")]
#[case::type_of_amount(json!({"order_id": "A-17", "amount": "1"}), "invalid type")]
#[tokio::test]
async fn an_invalid_refund_is_a_tool_error_without_an_effect(#[case] arguments: Value, #[case] why: &str) {
    let shop = shop().await;
    let result = session(&shop).await.call_tool(call("process_refund", &arguments)).await.unwrap();

    assert!(error_text(&result).contains(why), "{result:?}");
    assert_eq!(shop.summary().await, Summary::default());
}

#[rstest::rstest]
#[tokio::test]
async fn an_unknown_order_is_a_tool_error(
    #[values("verify_identity", "check_eligibility", "track_order")] tool: &'static str,
) {
    let shop = shop().await;
    let mut arguments = json!({"order_id": "A-0"});
    if tool == "verify_identity" {
        arguments["email"] = json!("customer-1@example.com");
    }
    let result = session(&shop).await.call_tool(call(tool, &arguments)).await.unwrap();
    assert!(error_text(&result).contains("There is no order A-0"), "{result:?}");
}

#[tokio::test]
async fn a_refund_without_a_ledger_is_a_tool_error_that_names_the_cause() {
    let shop = shop().await;
    let client = session(&shop).await;
    shop.ledger.stop().await.unwrap();

    let result = client.call_tool(refund("A-17", 10.0, "k1")).await.unwrap();
    assert!(error_text(&result).starts_with("nothing was refunded: the ledger cannot be reached"), "{result:?}");

    let alone = start(any_port(), Options::default()).await.unwrap();
    let client = connect(&alone, ClientLifecycleMode::Initialize).await;
    let result = client.call_tool(refund("A-17", 10.0, "k1")).await.unwrap();
    assert!(error_text(&result).contains("set LEDGER_URL"), "{result:?}");
}

#[tokio::test]
async fn a_lost_acknowledgement_of_the_ledger_is_a_protocol_error() {
    // This ledger reads the effect and closes the connection. It may have recorded the effect.
    let listener = tokio::net::TcpListener::bind(any_port()).await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let disconnecting_ledger = tokio::spawn(async move {
        let (mut connection, _) = listener.accept().await.unwrap();
        tokio::io::AsyncReadExt::read(&mut connection, &mut [0; 1024]).await.unwrap();
    });
    let orders = start(any_port(), Options { ledger: Some(url), ..Options::default() }).await.unwrap();
    let client = connect(&orders, ClientLifecycleMode::Initialize).await;

    let failed = client.call_tool(refund("A-17", 10.0, "k1")).await.unwrap_err();
    let ServiceError::McpError(error) = failed else { panic!("{failed:?}") };
    assert!(error.message.starts_with("whether the refund happened is unknown"), "{error:?}");
    disconnecting_ledger.await.unwrap();
}

#[rstest::rstest]
#[case::session(ClientLifecycleMode::Initialize)]
#[case::stateless(stateless())]
#[tokio::test]
async fn tracking_a_news_order_changes_a_tool_for_all_clients(#[case] lifecycle: ClientLifecycleMode) {
    let shop = shop().await;
    let before = session(&shop).await.list_all_tools().await.unwrap();
    let client = connect(&shop.orders, lifecycle).await;
    client.call_tool(call("track_order", &json!({"order_id": "NEWS-1"}))).await.unwrap();
    let after = session(&shop).await.list_all_tools().await.unwrap();
    let changed = |tool: &&rmcp::model::Tool| !before.contains(tool);
    let changed: Vec<_> = after.iter().filter(changed).map(|tool| tool.name.as_ref()).collect();
    assert_eq!((changed, after.len()), (vec!["check_eligibility"], before.len()));
}
