use super::*;
use crate::fixture::{answer_schema, claude, earlier_answer, request, tool};
use crate::optional_fields::UnsupportedFields;
use crate::request_writer::single_body;
use bloomery_crds::v1alpha1::ModelProvider;
use bloomery_engine::history::Turn;
use bloomery_engine::step::ModelRequest;

fn text(request: &ModelRequest<'_>, rejected: &[OptionalField]) -> String {
    let mut unsupported = UnsupportedFields::default();
    for field in rejected {
        unsupported.add(*field);
    }
    let body = single_body(RequestContext {
        endpoint: &claude("http://x"),
        user: "uid-1",
        request,
        unsupported: &unsupported,
    })
    .unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}

#[test]
fn every_kind_of_turn_is_written() {
    let own = json!({"role": "assistant", "content": [
        {"type": "thinking", "thinking": "Hm.", "signature": "c2ln"},
        {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {"a": 1}}]});
    let theirs = json!({"role": "assistant", "content": null, "tool_calls": [
        {"id": "functions.f:0", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1,\"a\":2}"}},
        {"id": "functions.g:1", "type": "function", "function": {"name": "g", "arguments": ""}}]});
    let turns = [
        Turn::User("Refund A-17".into()),
        earlier_answer(ModelProvider::Anthropic, "claude", &own),
        Turn::ToolResult { id: "toolu_1".into(), text: "paid".into() },
        earlier_answer(ModelProvider::Openai, "default", &theirs),
        Turn::ToolResult { id: "functions.f:0".into(), text: "first".into() },
        Turn::ToolResult { id: "functions.g:1".into(), text: String::new() },
        Turn::User(" ".into()),
    ];
    let mut untyped = tool();
    untyped.input_schema = json!({"properties": {}});
    untyped.description = String::new();
    let tools = [tool(), untyped];
    assert_eq!(
        text(&ModelRequest { tools: &tools, temperature: Some(1.5), ..request(&turns) }, &[]),
        concat!(
            r#"{"model":"claude-sonnet-5","max_tokens":8192,"metadata":{"user_id":"uid-1"},"stream":true,"temperature":1.0,"#,
            r#""cache_control":{"type":"ephemeral"},"tools":[{"name":"orders_get","description":"Reads an order","#,
            r#""input_schema":{"properties":{"id":{"type":"string"}},"type":"object"}},"#,
            r#"{"name":"orders_get","input_schema":{"properties":{},"type":"object"}}],"#,
            r#""system":[{"type":"text","text":"Be kind.","cache_control":{"type":"ephemeral"}}],"#,
            r#""messages":[{"role":"user","content":[{"type":"text","text":"Refund A-17"}]},"#,
            r#"{"content":[{"signature":"c2ln","thinking":"Hm.","type":"thinking"},"#,
            r#"{"id":"toolu_1","input":{"a":1},"name":"f","type":"tool_use"}],"role":"assistant"},"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_1","content":"paid"}]},"#,
            r#"{"role":"assistant","content":["#,
            r#"{"type":"tool_use","id":"call_3_0","name":"f","input":{"INVALID_JSON":"{\"a\":1,\"a\":2}"}},"#,
            r#"{"type":"tool_use","id":"call_3_1","name":"g","input":{}}]},"#,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_3_0","content":"first"},"#,
            r#"{"type":"tool_result","tool_use_id":"call_3_1","content":""},"#,
            r#"{"type":"text","text":"(no words)"}]}]}"#,
        )
    );
}

#[test]
fn rejected_and_unset_fields_are_not_sent() {
    let all = [
        OptionalField::Stream,
        OptionalField::Cache,
        OptionalField::SystemCache,
        OptionalField::AnswerSchema,
        OptionalField::Temperature,
        OptionalField::User,
    ];
    let request_with_all =
        ModelRequest { temperature: Some(0.1), answer_schema: Some(answer_schema()), ..request(&[]) };
    assert_eq!(
        text(&request_with_all, &all),
        concat!(
            r#"{"model":"claude-sonnet-5","max_tokens":8192,"#,
            r#""system":[{"type":"text","text":"Be kind."}],"messages":[]}"#,
        )
    );
    let with_schema = text(&request_with_all, &[OptionalField::Stream, OptionalField::Cache]);
    assert!(with_schema.contains(r#""output_config":{"format":{"type":"json_schema","schema":{"#), "{with_schema}");
}
