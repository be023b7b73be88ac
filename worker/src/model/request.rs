//! The request, written by a fixed rule: the history last, so that a request begins with the bytes of the one
//! before it, which is what providers' prompt caches are keyed by.

use bloomery_engine::step::ModelRequest;
use bloomery_engine::tool::CatalogueTool;
use bloomery_engine::turn::Turn;
use bytes::Bytes;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use serde_json::Value;

/// Writes the body of a request.
pub(super) fn body(model: &str, user: &str, request: &ModelRequest<'_>) -> serde_json::Result<Bytes> {
    let ModelRequest { system, turns, tools, temperature, stage: _, model: _, reserve: _ } = request;
    let body = Body {
        model,
        user,
        temperature: *temperature,
        tools: tools.iter().map(Tool::from).collect(),
        messages: Messages { system, turns },
    };
    serde_json::to_vec(&body).map(Bytes::from)
}

/// There is no limit on tokens in it: servers disagree on its name, and refuse the other. Nor is there
/// `parallel_tool_calls`, which some refuse: several calls in one answer are handled anyway.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    user: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: Messages<'a>,
}

#[derive(Serialize)]
struct Tool<'a> {
    r#type: &'static str,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    parameters: &'a Value,
}

impl<'a> From<&'a CatalogueTool> for Tool<'a> {
    fn from(tool: &'a CatalogueTool) -> Self {
        let CatalogueTool { alias, description, input_schema, .. } = tool;
        Self { r#type: "function", function: Function { name: alias, description, parameters: input_schema } }
    }
}

struct Messages<'a> {
    system: &'a str,
    turns: &'a [Turn],
}

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut messages = serializer.serialize_seq(Some(self.turns.len() + 1))?;
        messages.serialize_element(&Message::System { content: self.system })?;
        for turn in self.turns {
            match turn {
                Turn::User(content) => messages.serialize_element(&Message::User { content })?,
                Turn::Assistant(message) => messages.serialize_element(message)?,
                Turn::ToolResult { id, text } => {
                    messages.serialize_element(&Message::Tool { tool_call_id: id, content: text })?;
                }
            }
        }
        messages.end()
    }
}

#[derive(Serialize)]
#[serde(tag = "role", rename_all = "lowercase")]
enum Message<'a> {
    System { content: &'a str },
    User { content: &'a str },
    Tool { tool_call_id: &'a str, content: &'a str },
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_crds::Digest;
    use bloomery_crds::v1alpha1::Stage;
    use bloomery_engine::tool::ToolSource;
    use serde_json::json;

    fn tool() -> CatalogueTool {
        CatalogueTool {
            name: "orders/get".into(),
            alias: "orders_get".into(),
            description: "Reads an order".into(),
            input_schema: json!({"type": "object", "properties": {"id": {"type": "string"}}}),
            digest: Digest::of_bytes(b"x"),
            source: ToolSource::Server,
            read_only: true,
            idempotent: true,
            visible: true,
        }
    }

    fn text(turns: &[Turn], tools: &[CatalogueTool], temperature: Option<f64>) -> String {
        let request = ModelRequest {
            stage: Stage::Plan,
            model: "default",
            system: "Be kind.".into(),
            turns: turns.into(),
            tools,
            temperature,
            reserve: 7,
        };
        String::from_utf8(body("gpt-5", "uid-1", &request).unwrap().to_vec()).unwrap()
    }

    #[test]
    fn every_turn_is_written_by_the_fixed_rule() {
        let turns = [
            Turn::User("Refund A-17".into()),
            Turn::Assistant(json!({"role": "assistant", "content": null, "tool_calls": [{"id": "c1"}]})),
            Turn::ToolResult { id: "c1".into(), text: "paid".into() },
        ];
        assert_eq!(
            text(&turns, &[tool()], Some(0.5)),
            concat!(
                r#"{"model":"gpt-5","user":"uid-1","temperature":0.5,"#,
                r#""tools":[{"type":"function","function":{"name":"orders_get","description":"Reads an order","#,
                r#""parameters":{"properties":{"id":{"type":"string"}},"type":"object"}}}],"#,
                r#""messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"Refund A-17"},"#,
                r#"{"content":null,"role":"assistant","tool_calls":[{"id":"c1"}]},"#,
                r#"{"role":"tool","tool_call_id":"c1","content":"paid"}]}"#,
            )
        );
    }

    #[test]
    fn what_is_not_set_is_not_sent() {
        assert_eq!(
            text(&[], &[], None),
            r#"{"model":"gpt-5","user":"uid-1","messages":[{"role":"system","content":"Be kind."}]}"#
        );
    }

    #[test]
    fn a_request_begins_with_the_bytes_of_the_one_before() {
        let turns = [
            Turn::User("Refund A-17".into()),
            Turn::Assistant(json!({"role": "assistant", "content": "Which order?", "reasoning": {"n": 0.1}})),
            Turn::User("A-17".into()),
        ];
        for shorter in 0..turns.len() {
            let before = text(&turns[..shorter], &[tool()], Some(0.7));
            let after = text(&turns[..=shorter], &[tool()], Some(0.7));
            let history = before.strip_suffix("]}").unwrap();
            assert!(after.starts_with(&format!("{history},")), "{before}\n{after}");
        }
    }
}
