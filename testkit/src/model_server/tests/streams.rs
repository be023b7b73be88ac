//! Tests of streams in both protocols.

mod broken;

use super::*;

/// A script with multi-byte characters in a thought, a text and arguments, and with escapes and invalid JSON in arguments.
const SPECIAL_CHARACTERS: &str = r#"
conversations:
  - name: c
    turns:
      - thinking: "Überlegt: 訂單 A-17 🌸"
        say: "Grüße, 訂單 17 🌸🌸!\n\nDone?"
        calls:
          - {name: verify_identity, arguments: {email: "zoë@example.com", note: "line\nbreak \\u00e9 \"q\""}}
          - {name: track_order, rawArguments: '{"order_id": '}
"#;

/// The name, if there is one, and the data of an event.
type Event = (Option<String>, String);

/// Requests a stream, and returns its pieces as they were received.
async fn pieces(model: &Running, path: &str, body: &Value) -> Vec<Vec<u8>> {
    let mut body = body.clone();
    body["stream"] = json!(true);
    let request = crate::http::client().unwrap().post(format!("{}{path}", model.url())).json(&body);
    let mut answer = request.header("anthropic-version", "2023-06-01").send().await.unwrap();
    assert_eq!(answer.headers()["content-type"], "text/event-stream; charset=utf-8");
    let mut pieces = Vec::new();
    while let Some(piece) = answer.chunk().await.unwrap() {
        pieces.push(piece.to_vec());
    }
    pieces
}

/// Parses the server-sent events of a stream.
fn parse_events(stream: &str) -> Vec<Event> {
    let field = |event: &str, name: &str| {
        let lines = event.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        lines.map(|value| value.strip_prefix(' ').unwrap_or(value).to_owned()).next()
    };
    let stream = stream.replace("\r\n", "\n");
    let events = stream.split("\n\n").filter(|event| !event.is_empty());
    events.map(|event| (field(event, "event"), field(event, "data").unwrap())).collect()
}

/// Requests a stream, and returns its events.
async fn request_events(model: &Running, path: &str, body: &Value) -> Vec<Event> {
    parse_events(&String::from_utf8(pieces(model, path, body).await.concat()).unwrap())
}

async fn openai(model: &Running, body: &Value) -> Vec<Event> {
    request_events(model, "/v1/chat/completions", body).await
}

async fn anthropic(model: &Running, body: &Value) -> Vec<Event> {
    request_events(model, "/v1/messages", body).await
}

/// Returns a request in Anthropic's protocol.
fn messages() -> Value {
    let tool = json!({"name": "track_order", "input_schema": {"type": "object"}});
    json!({
        "model": "claude-test", "max_tokens": 1024, "system": "You are a Support Agent.", "tools": [tool],
        "metadata": {"user_id": "job-2"}, "messages": [{"role": "user", "content": "Refund order A-17"}],
    })
}

/// Joins the chunks of chat completions. Returns the text, the arguments by call, and the finish reasons.
fn join_chunks(events: &[Event]) -> (String, Vec<String>, Vec<Value>) {
    let (mut text, mut calls, mut reasons) = (String::new(), Vec::new(), Vec::new());
    for (_, data) in events.iter().filter(|(_, data)| data != "[DONE]") {
        let chunk: Value = serde_json::from_str(data).unwrap();
        let Some(choice) = chunk["choices"].get(0) else { continue };
        text += choice["delta"]["content"].as_str().unwrap_or_default();
        for call in choice["delta"]["tool_calls"].as_array().into_iter().flatten() {
            let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
            calls.resize(calls.len().max(index + 1), String::new());
            calls[index] += call["function"]["arguments"].as_str().unwrap();
        }
        reasons.extend(Some(choice["finish_reason"].clone()).filter(|reason| !reason.is_null()));
    }
    (text, calls, reasons)
}

#[tokio::test]
async fn the_joined_chunks_equal_the_answer_of_chat_completions() {
    let model = model(SPECIAL_CHARACTERS).await;
    let mut body = request(&[]);
    let whole = ask(&model, &body).await.1;
    body["stream"] = json!(true);
    body["stream_options"] = json!({"include_usage": true});
    let events = openai(&model, &body).await;

    let message = &whole["choices"][0]["message"];
    let (text, calls, reasons) = join_chunks(&events);
    assert_eq!(text, message["content"].as_str().unwrap());
    let arguments = message["tool_calls"].as_array().unwrap().iter().map(|call| call["function"]["arguments"].clone());
    assert_eq!(calls, arguments.collect::<Vec<_>>());
    assert_eq!(reasons, ["tool_calls"]);
    let [.., (_, usage), (_, done)] = events.as_slice() else { panic!("{events:?}") };
    let usage: Value = serde_json::from_str(usage).unwrap();
    assert_eq!((&usage["usage"], &usage["choices"], done.as_str()), (&whole["usage"], &json!([]), "[DONE]"));
    assert_eq!(usage["id"], whole["id"]);
}

#[tokio::test]
async fn usage_is_sent_only_on_request() {
    let model = model(SPECIAL_CHARACTERS).await;
    let events = openai(&model, &request(&[])).await;
    assert!(events.iter().all(|(_, data)| !data.contains("usage")), "{events:?}");
}

#[tokio::test]
async fn the_joined_events_equal_the_answer_of_messages() {
    let model = model(SPECIAL_CHARACTERS).await;
    let mut body = messages();
    let url = format!("{}/v1/messages", model.url());
    let request = crate::http::client().unwrap().post(url).header("anthropic-version", "2023-06-01").json(&body);
    let whole: Value = request.send().await.unwrap().json().await.unwrap();
    body["stream"] = json!(true);
    let events = anthropic(&model, &body).await;

    let mut message = Value::Null;
    let mut arguments = [String::new(), String::new(), String::new(), String::new()];
    for (name, data) in &events {
        let event: Value = serde_json::from_str(data).unwrap();
        assert_eq!(name.as_deref(), event["type"].as_str());
        let index = usize::try_from(event["index"].as_u64().unwrap_or_default()).unwrap();
        match name.as_deref().unwrap() {
            "message_start" => message = event["message"].clone(),
            "content_block_start" => {
                assert_eq!(message["content"].as_array().unwrap().len(), index);
                message["content"].as_array_mut().unwrap().push(event["content_block"].clone());
            }
            "content_block_delta" => {
                let delta = &event["delta"];
                if let Some(part) = delta["partial_json"].as_str() {
                    arguments[index] += part;
                }
                for field in ["text", "thinking", "signature"] {
                    if let Some(part) = delta[field].as_str() {
                        let so_far = message["content"][index][field].as_str().unwrap().to_owned();
                        message["content"][index][field] = json!(so_far + part);
                    }
                }
            }
            "message_delta" => {
                message["stop_reason"] = event["delta"]["stop_reason"].clone();
                message["usage"] = event["usage"].clone();
            }
            other => assert!(["ping", "content_block_stop", "message_stop"].contains(&other), "{other}"),
        }
    }
    assert_eq!(arguments[3], r#"{"order_id": "#);
    message["content"][2]["input"] = serde_json::from_str(&arguments[2]).unwrap();
    message["content"][3]["input"] = json!(arguments[3]);
    assert_eq!(message, whole);
    assert_eq!(events.last().unwrap().0.as_deref(), Some("message_stop"));
}

#[rstest::rstest]
#[case::openai("/v1/chat/completions", request(&[]))]
#[case::anthropic("/v1/messages", messages())]
#[tokio::test]
async fn a_stream_is_split_within_characters_escapes_and_events(#[case] path: &str, #[case] body: Value) {
    let model = model(SPECIAL_CHARACTERS).await;
    let pieces = pieces(&model, path, &body).await;

    let ends = |end: &str| pieces.iter().filter(|piece| piece.ends_with(end.as_bytes())).count();
    assert!(pieces.iter().filter(|piece| std::str::from_utf8(piece).is_err()).count() > 5, "within a character");
    assert!(pieces.iter().any(|piece| piece == b"\n"), "between the line feeds that end an event");
    assert!(ends("\\") > 2, "within an escape");
    assert!(pieces.len() > 4 * parse_events(&String::from_utf8(pieces.concat()).unwrap()).len(), "within an event");
}

#[rstest::rstest]
#[case::openai("/v1/chat/completions", request(&[]))]
#[case::anthropic("/v1/messages", messages())]
#[tokio::test]
async fn an_unusual_form_does_not_change_the_answer(#[case] path: &str, #[case] body: Value) {
    let usual = model(SPECIAL_CHARACTERS).await;
    let unusual = model(&SPECIAL_CHARACTERS.replace("thinking:", "unusual: true\n        thinking:")).await;
    let stream = String::from_utf8(pieces(&unusual, path, &body).await.concat()).unwrap();
    assert!(stream.starts_with(": still here\r\n") && stream.contains("\"x_unknown\":{"), "{stream}");
    let said = |stream: Vec<Event>| {
        let events = stream.into_iter().filter(|(name, _)| name.as_deref() != Some("x_news"));
        events.map(|(_, data)| without_unknown(serde_json::from_str(&data).unwrap_or_default())).collect::<Vec<_>>()
    };
    assert_eq!(said(parse_events(&stream)), said(request_events(&usual, path, &body).await));

    let whole = crate::http::client().unwrap().post(format!("{}{path}", unusual.url())).json(&body);
    let whole: Value = whole.header("anthropic-version", "2023-06-01").send().await.unwrap().json().await.unwrap();
    assert!(whole["usage"]["x_unknown"].is_object(), "{whole}");
}

fn without_unknown(value: Value) -> Value {
    match value {
        Value::Object(object) => {
            let kept = object.into_iter().filter(|(key, _)| key != "x_unknown");
            kept.map(|(key, value)| (key, without_unknown(value))).collect()
        }
        Value::Array(values) => values.into_iter().map(without_unknown).collect(),
        other => other,
    }
}
