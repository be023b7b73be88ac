//! Tests of answers that end early, stall, are slow or far too long, with and without streaming.

use super::*;

/// Returns a request in each protocol, with or without streaming.
fn requests_in_both_protocols(stream: bool) -> [(&'static str, Value); 2] {
    let mut bodies = [("/v1/chat/completions", request(&[])), ("/v1/messages", messages())];
    for (_, body) in &mut bodies {
        body["stream"] = json!(stream);
    }
    bodies
}

fn with_fault(fault: &str) -> String {
    format!("conversations: [{{name: c, turns: [{{say: all is well that ends well, faults: [{fault}]}}]}}]")
}

/// Sends a request, and returns the response once its body begins.
async fn send_to(model: &Running, path: &str, body: &Value) -> reqwest::Response {
    let request = crate::http::client().unwrap().post(format!("{}{path}", model.url())).json(body);
    let answer = request.header("anthropic-version", "2023-06-01").send().await.unwrap();
    assert_eq!(answer.status(), 200);
    answer
}

/// Reads a body to its end. Returns the text, and whether the body ended without an error.
async fn read(mut answer: reqwest::Response) -> (String, bool) {
    let mut read = Vec::new();
    loop {
        match answer.chunk().await {
            Ok(Some(piece)) => read.extend_from_slice(&piece),
            ended => return (String::from_utf8_lossy(&read).into_owned(), ended.is_ok()),
        }
    }
}

#[rstest::rstest]
#[case::reset("{cut: reset}", false)]
#[case::short("{cut: short}", true)]
#[tokio::test]
async fn an_answer_can_end_in_the_middle(#[case] fault: &str, #[case] ends_without_error: bool) {
    for stream in [false, true] {
        let model = model(&with_fault(fault)).await;
        for (path, body) in requests_in_both_protocols(stream) {
            let (cut, ended) = read(send_to(&model, path, &body).await).await;
            let (whole, _) = read(send_to(&model, path, &body).await).await;
            assert!(ended == ends_without_error && !cut.is_empty(), "{path}: {cut}");
            assert!(whole.starts_with(&cut) && cut.len() < whole.len(), "{path}: {cut}");
            assert!(!cut.ends_with("\n\n") && serde_json::from_str::<Value>(&cut).is_err(), "{path}: {cut}");
        }
    }
}

#[tokio::test]
async fn a_stream_can_lack_its_last_event() {
    let model = model(&with_fault("{cut: unmarked}")).await;
    for (path, body) in requests_in_both_protocols(true) {
        let (cut, ended) = read(send_to(&model, path, &body).await).await;
        let (whole, _) = read(send_to(&model, path, &body).await).await;
        assert!(ended);
        assert_eq!(parse_events(&cut).len() + 1, parse_events(&whole).len());
        assert!(whole.starts_with(&cut) && cut.ends_with("\n\n"), "{path}: {cut}");
    }
}

#[tokio::test]
async fn an_answer_can_stall_until_the_client_disconnects() {
    for stream in [false, true] {
        let model = model(&with_fault("{stall: true}")).await;
        for (path, body) in requests_in_both_protocols(stream) {
            let mut answer = send_to(&model, path, &body).await;
            assert!(!answer.chunk().await.unwrap().unwrap().is_empty());
            drop(answer);
            assert!(read(send_to(&model, path, &body).await).await.1, "the next answer is complete");
        }
        // A stalled answer does not delay the stop.
        let mut waiting = request(&[]);
        waiting["user"] = json!("job-3");
        waiting["stream"] = json!(stream);
        let answer = send_to(&model, "/v1/chat/completions", &waiting).await;
        model.stop().await.unwrap();
        assert!(!read(answer).await.1);
    }
}

#[tokio::test]
async fn a_slow_answer_is_complete() {
    for stream in [false, true] {
        let model = model(&with_fault("{slow: 1}")).await;
        for (path, body) in requests_in_both_protocols(stream) {
            let slow = read(send_to(&model, path, &body).await).await;
            assert_eq!(slow, read(send_to(&model, path, &body).await).await);
        }
        let requests: Requests = control(&model, "requests").await;
        assert_eq!(requests.users["job-1"].answered, 2);
    }
}

#[tokio::test]
async fn an_error_can_come_in_the_middle_of_a_stream() {
    let model = model(&with_fault("{errorInside: 529}")).await;
    let [(path, body), (other, messages)] = requests_in_both_protocols(true);
    let (stream, ended) = read(send_to(&model, path, &body).await).await;
    let events = parse_events(&stream);
    let error: Value = serde_json::from_str(&events.last().unwrap().1).unwrap();
    assert!(ended && events.len() > 3, "{events:?}");
    assert_eq!(error["error"]["type"], "server_error");

    let (stream, _) = read(send_to(&model, other, &messages).await).await;
    let events = parse_events(&stream);
    let (name, data) = events.last().unwrap();
    let error: Value = serde_json::from_str(data).unwrap();
    assert_eq!((name.as_deref(), &error["error"]["type"]), (Some("error"), &json!("overloaded_error")));
    assert_eq!(events[0].0.as_deref(), Some("message_start"));
}

#[tokio::test]
async fn an_empty_answer_is_valid_in_both_protocols() {
    let model = model(&with_fault("{empty: true, times: 2}")).await;
    let [(path, body), (other, messages)] = requests_in_both_protocols(false);
    let whole = |(text, _): (String, bool)| serde_json::from_str::<Value>(&text).unwrap();
    assert_eq!(whole(read(send_to(&model, path, &body).await).await)["choices"], json!([]));
    let empty = whole(read(send_to(&model, other, &messages).await).await);
    assert_eq!((&empty["content"], &empty["stop_reason"]), (&json!([]), &json!("end_turn")));
    assert_eq!(join_chunks(&openai(&model, &request(&[])).await), (String::new(), vec![], vec![]));
    let names: Vec<_> = anthropic(&model, &messages).await.into_iter().filter_map(|(name, _)| name).collect();
    assert_eq!(names, ["message_start", "ping", "message_delta", "message_stop"]);
}

#[tokio::test]
async fn a_huge_answer_is_generated_while_it_is_sent() {
    const BYTES: usize = 10 << 20;
    let model = model(&with_fault(&format!("{{huge: {BYTES}, times: always}}"))).await;
    for stream in [false, true] {
        for (path, body) in requests_in_both_protocols(stream) {
            let mut answer = send_to(&model, path, &body).await;
            let (mut length, mut last) = (0, 0);
            while let Some(piece) = answer.chunk().await.unwrap() {
                length += piece.len();
                last = *piece.last().unwrap();
            }
            assert!(length > BYTES && length < BYTES + BYTES / 8, "{path}: {length}");
            assert_eq!(last, if stream { b'\n' } else { b'}' }, "{path}");
        }
    }
}
