//! Tests of holds, and of faults before an answer.

use super::*;
use bloomery_crds::v1alpha1::Stage;

fn with_faults(faults: &str) -> String {
    format!("conversations: [{{name: c, turns: [{{say: well, faults: [{faults}]}}]}}]")
}

#[tokio::test]
async fn faults_are_served_in_order_and_then_the_answer() {
    let faults = "{status: 429, retryAfter: 1, times: 2}, {status: 500}, {status: 401}, \
                  {garbage: true}, {empty: true}, {errorInside: true}";
    let model = model(&with_faults(faults)).await;
    let mut responses = Vec::new();
    for _ in 0..8 {
        let answer = send(&model, &request(&[])).await;
        let retry_after = answer.headers().get("retry-after").map(|value| value.to_str().unwrap().to_owned());
        let status = answer.status().as_u16();
        responses.push((status, retry_after, answer.text().await.unwrap()));
    }

    let statuses: Vec<u16> = responses.iter().map(|(status, ..)| *status).collect();
    assert_eq!(statuses, [429, 429, 500, 401, 200, 200, 200, 200]);
    assert_eq!(responses[0].1.as_deref(), Some("1"));
    assert_eq!(responses[2].1, None);
    assert!(responses[0].2.contains(r#""code":"rate_limit_exceeded""#), "{}", responses[0].2);
    assert!(serde_json::from_str::<Value>(&responses[4].2).is_err());
    assert!(responses[5].2.contains(r#""choices":[]"#), "{}", responses[5].2);
    assert!(responses[6].2.starts_with(r#"{"error":"#), "{}", responses[6].2);
    assert!(responses[7].2.contains("well"), "{}", responses[7].2);

    let requests: Requests = control(&model, "requests").await;
    assert_eq!((requests.users["job-1"].requests, requests.users["job-1"].answered), (8, 1));
}

#[tokio::test]
async fn a_retry_time_can_be_a_date() {
    let model = model(&with_faults("{status: 529, retryAfterDate: 3600}")).await;
    let answer = send(&model, &request(&[])).await;
    assert_eq!(answer.status(), 529);
    let date = answer.headers()["retry-after"].to_str().unwrap();
    let at = jiff::fmt::rfc2822::parse(date).unwrap().timestamp();
    let wait = at.duration_since(jiff::Timestamp::now()).as_secs();
    assert!(date.ends_with(" GMT") && (3_000..=3_600).contains(&wait), "{date}: {wait} s");
}

#[tokio::test]
async fn faults_are_counted_for_each_conversation() {
    let model = model(&with_faults("{status: 500}")).await;
    let mut other = request(&[]);
    other["user"] = json!("job-2");

    assert_eq!(ask(&model, &request(&[])).await.0, 500);
    assert_eq!(ask(&model, &other).await.0, 500);
    assert_eq!(ask(&model, &request(&[])).await.0, 200);
    assert_eq!(ask(&model, &other).await.0, 200);
}

#[tokio::test]
async fn a_fault_can_be_served_always() {
    let model = model("conversations: [{name: c, turns: [{faults: [{status: 503, times: always}]}]}]").await;
    for _ in 0..3 {
        assert_eq!(ask(&model, &request(&[])).await.0, 503);
    }
}

#[tokio::test]
async fn a_hang_ends_when_the_client_disconnects() {
    let model = model(&with_faults("{hang: true}")).await;
    let url = format!("{}/v1/chat/completions", model.url());
    let client = crate::http::client().unwrap();
    let hanging = tokio::spawn(client.post(url).json(&request(&[])).send());
    while control::<Requests>(&model, "requests").await.total == 0 {
        tokio::task::yield_now().await;
    }
    hanging.abort();

    assert_eq!(ask(&model, &request(&[])).await.0, 200);
}

#[tokio::test]
async fn a_hang_does_not_delay_the_stop() {
    let model = model(&with_faults("{hang: true}")).await;
    let url = format!("{}/v1/chat/completions", model.url());
    let hanging = tokio::spawn(crate::http::client().unwrap().post(url).json(&request(&[])).send());
    while control::<Requests>(&model, "requests").await.total == 0 {
        tokio::task::yield_now().await;
    }
    model.stop().await.unwrap();

    assert_eq!(hanging.await.unwrap().unwrap().status(), 503);
}

#[tokio::test]
async fn a_request_waits_at_a_hold_until_its_release_or_until_its_client_disconnects() {
    let model = std::sync::Arc::new(model(&with_faults("{hold: think}, {status: 500}")).await);
    let asking = |model: &std::sync::Arc<Running>| {
        let model = std::sync::Arc::clone(model);
        tokio::spawn(async move { ask(&model, &request(&[])).await })
    };

    let disconnected = asking(&model);
    let held = until_held(&model, 1).await;
    assert_eq!(held, [Held { name: "think".to_owned(), user: "job-1".to_owned(), stage: Stage::Plan, turn: 0 }]);
    disconnected.abort();
    until_held(&model, 0).await;

    // The next worker sends the same request and waits at the same hold.
    let second = asking(&model);
    until_held(&model, 1).await;
    assert_eq!(release(&model, "other").await, json!({"released": "other", "waiting": 0}));
    assert!(!second.is_finished());
    assert_eq!(release(&model, "think").await, json!({"released": "think", "waiting": 1}));
    assert_eq!(second.await.unwrap().0, 500, "the fault after the hold is served");
    assert_eq!(ask(&model, &request(&[])).await.0, 200);
    until_held(&model, 0).await;
}
