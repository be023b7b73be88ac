use super::*;
use proptest::prelude::*;
use rmcp::model::{CallToolResult, ListToolsResult, ServerJsonRpcMessage};
use rstest::rstest;

/// Returns a field of the repaired answer, or `None` if the answer is unchanged.
fn field(text: &str, name: &str) -> Option<Value> {
    match repaired(Cow::Borrowed(text)) {
        Cow::Borrowed(_) => None,
        Cow::Owned(repaired) => {
            let mut message: Value = serde_json::from_str(&repaired).unwrap();
            assert_eq!((&message["jsonrpc"], &message["id"]), (&json!("2.0"), &json!(7)));
            Some(message[name].take())
        }
    }
}

/// Returns the repaired result, or `None` if the result is unchanged.
fn result(raw: &str) -> Option<Value> {
    field(&format!(r#"{{"jsonrpc":"2.0","id":7,"result":{raw}}}"#), "result")
}

#[rstest]
#[case::text(json!("sold out"), Some((-32603, "sold out")))]
#[case::no_code(json!({"message": "sold out"}), Some((-32603, "sold out")))]
#[case::code_in_words(json!({"code": "SOLD_OUT", "message": "sold out"}), Some((-32603, "sold out")))]
#[case::no_message(json!({"code": -32000, "why": 1}), Some((-32000, r#"{"code":-32000,"why":1}"#)))]
#[case::well_formed(json!({"code": -32000, "message": "x", "data": [1]}), None)]
#[case::none(Value::Null, None)]
#[case::no(json!(false), None)]
#[case::empty(json!(""), None)]
#[case::nothing(json!({}), None)]
fn an_error_in_another_form_is_repaired(#[case] error: Value, #[case] repaired: Option<(i32, &str)>) {
    let text = json!({"jsonrpc": "2.0", "id": 7, "error": error}).to_string();
    let expected = repaired.map(|(code, message)| json!({"code": code, "message": message}));
    assert_eq!(field(&text, "error"), expected);
}

#[rstest]
#[case::no_id(r#"{"jsonrpc": "2.0", "error": "x"}"#)]
#[case::null_id(r#"{"jsonrpc": "2.0", "id": null, "error": "x"}"#)]
#[case::with_a_result(r#"{"jsonrpc": "2.0", "id": 1, "error": "x", "result": {}}"#)]
#[case::a_request_of_the_server(r#"{"jsonrpc": "2.0", "id": 1, "error": "x", "method": "ping"}"#)]
#[case::no_error(r#"{"jsonrpc": "2.0", "id": 1}"#)]
#[case::neither(r#"{"jsonrpc": "2.0", "id": 1, "error": null, "result": null}"#)]
#[case::no_json("\"error\"")]
#[case::well_formed(r#"{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"a"}],"isError":false}}"#)]
#[case::another_result(r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-06-18"}}"#)]
#[case::input(r#"{"jsonrpc":"2.0","id":1,"result":{"resultType":"input_required","content":[1]}}"#)]
fn a_well_formed_answer_and_a_message_that_is_no_answer_are_unchanged(#[case] text: &str) {
    assert_eq!(repaired(Cow::Borrowed(text)), text);
}

#[test]
fn a_null_result_or_error_of_json_rpc_1_0_is_ignored() {
    let result = json!({"content": [{"type": "text", "text": "done"}]});
    let text = json!({"id": 7, "result": result, "error": null}).to_string();
    assert_eq!(field(&text, "result"), Some(result));
    let text = json!({"id": 7, "result": null, "error": {"code": 5, "message": "sold out"}}).to_string();
    assert_eq!(field(&text, "error"), Some(json!({"code": 5, "message": "sold out"})));
}

#[rstest]
#[case::unknown_type(
    r#"{"content":[{"type":"hologram","data":[1]},{"type":"text","text":"after"}]}"#,
    json!({"content": [
        {"type": "text", "text": "[content of the type `hologram`, which MCP does not define, is left out]"},
        {"type": "text", "text": "after"},
    ]})
)]
#[case::a_type_with_line_breaks(
    r#"{"content":[{"type":"a`]\n\nb"}]}"#,
    json!({"content": [{"type": "text", "text": "[content of the type `a`] b`, which MCP does not define, is left out]"}]})
)]
#[case::a_known_type_with_wrong_fields(
    r#"{"content":[{"type":"text","txt":"a"}, "b", {}]}"#,
    json!({"content": [
        {"type": "text", "text": "[content that does not conform to MCP:]\n{\"type\":\"text\",\"txt\":\"a\"}"},
        {"type": "text", "text": "[content that does not conform to MCP:]\n\"b\""},
        {"type": "text", "text": "[content that does not conform to MCP:]\n{}"},
    ]})
)]
#[case::an_error_in_words(
    r#"{"content":[{"type":"text","text":"a"}],"isError":"yes"}"#,
    json!({"content": [{"type": "text", "text": "a"}], "isError": true})
)]
#[case::structured(
    r#"{"content":[{"type":"hologram"}],"structuredContent":{"a":1},"isError":null,"_meta":7}"#,
    json!({
        "content": [{"type": "text", "text": "[content of the type `hologram`, which MCP does not define, is left out]"}],
        "structuredContent": {"a": 1},
    })
)]
fn the_readable_parts_of_a_result_are_kept(#[case] raw: &str, #[case] expected: Value) {
    assert_eq!(result(raw), Some(expected));
}

#[rstest]
#[case::a_text_as_content(r#"{"content":"hello"}"#, false)]
#[case::an_error_too(r#"{"content":"hello", "isError":1}"#, true)]
#[case::a_number_out_of_range(r#"{"content":[],"structuredContent":{"a":1e999}}"#, false)]
#[case::unreadable_and_no_content(r#"{"a":1e999}"#, false)]
fn an_unreadable_result_is_quoted(#[case] raw: &str, #[case] is_error: bool) {
    let result = result(raw).unwrap();
    let text = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(text, verbatim_answer(raw));
    assert!(text.ends_with(raw) && text.contains("does not conform to MCP"), "{text}");
    assert_eq!(result["isError"] == json!(true), is_error);
}

#[test]
fn a_result_that_is_nested_too_deep_is_quoted() {
    let raw = format!(r#"{{"content":[],"structuredContent":{}{}}}"#, "[".repeat(200), "]".repeat(200));
    assert_eq!(result(&raw).unwrap()["content"][0]["text"], verbatim_answer(&raw));
}

#[rstest]
#[case(r#"{"a":"\ud800"}"#, r#"{"a":"\ufffd"}"#)]
#[case(r#"{"a":"\udc00 b"}"#, r#"{"a":"\ufffd b"}"#)]
#[case(r#"{"a":"\uD83D\ude00\uD83D"}"#, r#"{"a":"\uD83D\ude00\ufffd"}"#)]
#[case(r#"{"a":"\ud83d\u0041"}"#, r#"{"a":"\ufffd\u0041"}"#)]
#[case(r#"{"a":"\\ud800"}"#, r#"{"a":"\\ud800"}"#)]
#[case(r#"{"a":"\ud8"}"#, r#"{"a":"\ud8"}"#)]
#[case(r"\ud800\", r"\ufffd\")]
#[case(r"\ud800\é", r"\ufffd\é")]
fn lone_surrogates_are_replaced(#[case] text: &str, #[case] expected: &str) {
    assert_eq!(without_lone_surrogates(text), expected);
}

fn tools(raw: &str) -> Option<Vec<Value>> {
    let result = result(&format!(r#"{{"tools":{raw},"nextCursor":"2"}}"#))?;
    assert_eq!(result["nextCursor"], "2");
    let page: ListToolsResult = serde_json::from_value(result.clone()).unwrap();
    assert_eq!(page.next_cursor.as_deref(), Some("2"));
    Some(result["tools"].as_array().unwrap().clone())
}

#[rstest]
#[case::no_schema(r#"{"name":"a"}"#, "a", "it has no inputSchema")]
#[case::no_object(r#"{"name":"a","inputSchema":true}"#, "a", "its inputSchema is not an object")]
#[case::null(r#"{"name":"a","inputSchema":null}"#, "a", "its inputSchema is not an object")]
#[case::output(r#"{"name":"a","inputSchema":{},"outputSchema":true}"#, "a", "it does not conform to MCP: invalid type")]
#[case::hint(
    r#"{"name":"a","inputSchema":{},"annotations":{"readOnlyHint":"yes"}}"#,
    "a",
    "it does not conform to MCP"
)]
#[case::no_name(r#"{"inputSchema":{}}"#, "", "it has no name")]
#[case::not_a_tool("7", "", "it has no name")]
fn a_malformed_tool_does_not_affect_the_others(#[case] tool: &str, #[case] name: &str, #[case] reason: &str) {
    let valid = json!({"name": "b", "inputSchema": {"type": "object"}});
    let tools = tools(&format!("[{valid}, {tool}, {valid}]")).unwrap();
    assert_eq!((&tools[0], &tools[2], tools.len()), (&valid, &valid, 3));
    assert_eq!((tools[1]["name"].as_str(), &tools[1]["inputSchema"]), (Some(name), &json!({})));
    let unusable = tools[1]["_meta"][UNUSABLE].as_str().unwrap();
    assert!(unusable.starts_with(reason) && !unusable.contains("line 1"), "{unusable}");
}

#[test]
fn a_tool_that_is_nested_too_deep_is_marked() {
    for levels in [40, 120, 200] {
        let deep = format!(r#"{{"a":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
        let tools = tools(&format!(r#"[{{"name":"a","inputSchema":{deep}}}]"#)).unwrap();
        assert_eq!(tools[0]["_meta"][UNUSABLE], "it is nested more than 32 levels deep", "{levels}");
    }
    assert_eq!(tools(r#"[{"name":"a","inputSchema":{"a":[[[]]]}}]"#), None);
}

#[test]
fn only_one_tool_beyond_the_limit_is_repaired() {
    let tools = tools(&format!("[{}1]", "1,".repeat(100_000))).unwrap();
    assert_eq!(tools.len(), crate::limits::MAX_TOOLS + 1);
}

proptest! {
    #[test]
    fn rmcp_reads_every_repaired_answer(
        raw in "(\\{|\\}|\\[|\\]|\"content\":|\"isError\":|\"structuredContent\":|\"tools\":|\"type\":\"text\"|\"text\":|\"x\"|,|1e999|null|\"\\\\ud800\"){0,16}",
        wrap in prop::bool::ANY,
    ) {
        let raw = if wrap { format!(r#"{{"content":[{raw}]}}"#) } else { raw };
        let text = format!(r#"{{"jsonrpc":"2.0","id":7,"result":{raw}}}"#);
        let is_json = serde_json::from_str::<&RawValue>(&text).is_ok();
        let read = read(&text, &Redactor::default());
        if is_json {
            prop_assert!(serde_json::from_str::<ServerJsonRpcMessage>(&read).is_ok(), "{read}");
        }
        if let Ok(Some(result)) = serde_json::from_str::<Value>(&read).map(|message| message.get("result").cloned())
            && wrap
        {
            prop_assert!(serde_json::from_value::<CallToolResult>(result).is_ok(), "{read}");
        }
    }

    #[test]
    fn no_text_makes_the_repair_panic(text in ".{0,40}|(\\\\|u|d|8|0|é|\"){0,40}") {
        let whole = without_lone_surrogates(&text);
        if !text.contains("\\u") {
            prop_assert_eq!(whole, text.as_str());
        }
    }
}
