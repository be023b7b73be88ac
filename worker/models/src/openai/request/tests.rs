use super::*;
use crate::fixture::{answer_schema, earlier_answer, endpoint, request, tool};
use crate::optional_fields::UnsupportedFields;
use crate::request_writer::single_body;
use bloomery_crds::v1alpha1::ModelProvider;
use bloomery_engine::history::Turn;
use bloomery_engine::step::ModelRequest;
use serde_json::json;

fn text(request: &ModelRequest<'_>, rejected: &[OptionalField], limit: Option<u64>) -> String {
    let mut unsupported = UnsupportedFields::default();
    for field in rejected {
        unsupported.add(*field);
    }
    let endpoint = bloomery_crds::run::ModelEndpoint { max_output_tokens: limit, ..endpoint("http://x") };
    let body =
        single_body(RequestContext { endpoint: &endpoint, user: "uid-1", request, unsupported: &unsupported }).unwrap();
    String::from_utf8(body.to_vec()).unwrap()
}

#[test]
fn every_kind_of_turn_is_written() {
    let own = json!({"role": "assistant", "content": null, "reasoning": "hm", "tool_calls": [{"id": "c1"}]});
    let theirs = json!({"role": "assistant", "content": "Let me see.", "reasoning": "hm", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\":1}"}},
        {"id": "c2", "type": "function", "function": {"name": "g", "arguments": ""}}]});
    let turns = [
        Turn::User("Refund A-17".into()),
        earlier_answer(ModelProvider::Openai, "default", &own),
        Turn::ToolResult { id: "c1".into(), text: "paid".into() },
        earlier_answer(ModelProvider::Openai, "fast", &theirs),
        Turn::ToolResult { id: "c2".into(), text: "second".into() },
        Turn::ToolResult { id: "c1".into(), text: "first".into() },
        earlier_answer(ModelProvider::Openai, "fast", &json!({"role": "assistant", "content": ""})),
    ];
    let tools = [tool()];
    assert_eq!(
        text(&ModelRequest { tools: &tools, temperature: Some(0.5), ..request(&turns) }, &[], None),
        concat!(
            r#"{"model":"gpt-5","user":"uid-1","stream":true,"stream_options":{"include_usage":true},"temperature":0.5,"#,
            r#""tools":[{"type":"function","function":{"name":"orders_get","description":"Reads an order","#,
            r#""parameters":{"properties":{"id":{"type":"string"}},"type":"object"}}}],"#,
            r#""messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"Refund A-17"},"#,
            r#"{"content":null,"reasoning":"hm","role":"assistant","tool_calls":[{"id":"c1"}]},"#,
            r#"{"role":"tool","tool_call_id":"c1","content":"paid"},"#,
            r#"{"role":"assistant","content":"Let me see.","tool_calls":["#,
            r#"{"id":"call_3_0","type":"function","function":{"name":"f","arguments":"{\"a\":1}"}},"#,
            r#"{"id":"call_3_1","type":"function","function":{"name":"g","arguments":"{}"}}]},"#,
            r#"{"role":"tool","tool_call_id":"call_3_1","content":"second"},"#,
            r#"{"role":"tool","tool_call_id":"call_3_0","content":"first"},"#,
            r#"{"role":"assistant","content":""}]}"#,
        )
    );
}

#[test]
fn rejected_and_unset_fields_are_not_sent() {
    let all = [
        OptionalField::Stream,
        OptionalField::StreamUsage,
        OptionalField::AnswerSchema,
        OptionalField::Temperature,
        OptionalField::CompletionTokens,
    ];
    let request_with_all =
        ModelRequest { temperature: Some(0.1), answer_schema: Some(answer_schema()), ..request(&[]) };
    let messages = r#""messages":[{"role":"system","content":"Be kind."}]}"#;
    let minimal = format!(r#"{{"model":"gpt-5","user":"uid-1",{messages}"#);
    let without_user = text(&request_with_all, &[&all[..], &[OptionalField::User]].concat(), None);
    assert_eq!(without_user, format!(r#"{{"model":"gpt-5",{messages}"#));
    assert_eq!(text(&request_with_all, &all, None), minimal);
    assert_eq!(
        text(&request(&[]), &[OptionalField::Stream], None),
        minimal,
        "a request without a stream has no stream options"
    );
    let limited = text(&request(&[]), &[OptionalField::Stream], Some(7));
    assert!(limited.contains(r#""max_completion_tokens":7,"#), "{limited}");
    let limited = text(&request(&[]), &all, Some(7));
    assert!(limited.contains(r#""max_tokens":7,"#) && !limited.contains("completion"), "{limited}");
    let with_schema = text(&request_with_all, &[OptionalField::Stream, OptionalField::Temperature], None);
    let format = r#""response_format":{"type":"json_schema","json_schema":{"name":"ruling","strict":true,"schema":{"#;
    assert!(with_schema.contains(format), "{with_schema}");
}
