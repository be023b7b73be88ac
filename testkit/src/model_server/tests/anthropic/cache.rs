//! Tests of cache marks.

use super::*;
use crate::model_server::violation::Rule;

const ANY: &str = "conversations: [{name: any, turns: [{say: a}, {say: b}, {say: c}]}]";

fn marked(text: &str) -> Value {
    json!([{"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}])
}

/// Returns the prompt tokens that were written to the cache, read from the cache, and not cached.
fn counted(answer: &Value) -> [u64; 3] {
    ["cache_creation_input_tokens", "cache_read_input_tokens", "input_tokens"]
        .map(|name| answer["usage"][name].as_u64().unwrap())
}

#[tokio::test]
async fn the_next_request_reads_a_marked_prefix_from_the_cache() {
    let model = model(ANY).await;
    let mut first = body(&[]);
    first["system"] = marked("You are a Support Agent.");
    first["messages"][0]["content"] = marked("Refund order A-17");
    let [written, read, rest] = counted(&ask(&model, &first).await.1);
    assert!(written > 0 && read == 0, "{written} {read} {rest}");

    // The mark moves, but the prefix stays the same.
    let mut next = first.clone();
    next["messages"] = json!([
        {"role": "user", "content": "Refund order A-17"},
        {"role": "assistant", "content": "a"},
        {"role": "user", "content": marked("and?")},
    ]);
    let [more, read, _] = counted(&ask(&model, &next).await.1);
    assert_eq!(read, written, "the tokens that the first request has written are read");
    assert!(more > 0 && more < written, "{more}");
    assert_eq!(control::<Violations>(&model, "violations").await, Violations::default());

    // Each model has its own cache. A changed tool changes every prefix, because the tools come first.
    let mut other = first.clone();
    other["model"] = json!("claude-other");
    other["metadata"]["user_id"] = json!("job-3");
    assert_eq!(counted(&ask(&model, &other).await.1)[1], 0);
    let mut tools = first.clone();
    tools["metadata"]["user_id"] = json!("job-2");
    tools["tools"].as_array_mut().unwrap().pop();
    assert_eq!(counted(&ask(&model, &tools).await.1)[1], 0);
}

#[tokio::test]
async fn a_mark_on_the_request_marks_its_last_block() {
    let model = model(ANY).await;
    let mut body = body(&[]);
    body["cache_control"] = json!({"type": "ephemeral"});
    let [written, ..] = counted(&ask(&model, &body).await.1);
    assert!(written > 0);
    assert_eq!(counted(&ask(&model, &body).await.1)[..2], [0, written]);
}

#[tokio::test]
async fn a_fifth_mark_is_a_violation() {
    let model = model(ANY).await;
    let mut body = body(&[]);
    for tool in body["tools"].as_array_mut().unwrap() {
        tool["cache_control"] = json!({"type": "ephemeral"});
    }
    body["system"] = marked("You are a Support Agent.");
    assert_eq!(ask(&model, &body).await.0, 200);
    body["messages"][0]["content"] = marked("Refund order A-17, it arrived broken");
    let (status, answer) = ask(&model, &body).await;
    assert_eq!(status, 400);
    let why = "A maximum of 4 blocks with cache_control may be provided. Found 5.";
    assert_eq!(answer["error"]["message"], why);
    let violations: Violations = control(&model, "violations").await;
    assert_eq!(violations.violations[0].rule, Rule::CacheMarks);
}
