//! The request, written by a fixed rule: the history last, so that a request begins with the bytes of the one
//! before it, which is what providers' prompt caches are keyed by.

use bloomery_engine::step::ModelRequest;
use bloomery_engine::tool::CatalogueTool;
use bloomery_engine::turn::Turn;
use bytes::Bytes;
use serde::Serialize;
use serde_json::Value;

/// What every request ends with, after its last message.
const END: &[u8] = b"]}";

/// Writes the body of a request that stands alone.
pub(super) fn body(model: &str, user: &str, request: &ModelRequest<'_>) -> serde_json::Result<Bytes> {
    History::default().body(model, user, request)
}

/// The latest request of a conversation as it was written, without its end: the next one costs what is new in it.
#[derive(Debug, Default)]
pub(super) struct History {
    bytes: Vec<u8>,
    turns: usize,
    number: u32,
}

impl History {
    /// Writes the body of the next request. System prompt, tools and temperature are those of the request before: a
    /// conversation never changes them.
    pub(super) fn body(&mut self, model: &str, user: &str, request: &ModelRequest<'_>) -> serde_json::Result<Bytes> {
        let goes_on = !self.bytes.is_empty() && self.number == request.history && self.turns <= request.turns.len();
        if !goes_on {
            *self = Self::begin(model, user, request)?;
        }
        let length = self.bytes.len();
        if let Err(error) = self.add(request.turns.get(self.turns..).unwrap_or_default()) {
            self.bytes.truncate(length);
            return Err(error);
        }
        self.turns = request.turns.len();
        Ok([self.bytes.as_slice(), END].concat().into())
    }

    fn begin(model: &str, user: &str, request: &ModelRequest<'_>) -> serde_json::Result<Self> {
        let ModelRequest { system, turns: _, history, tools, temperature, stage: _, model: _, reserve: _ } = request;
        let mut bytes = serde_json::to_vec(&Body {
            model,
            user,
            temperature: *temperature,
            tools: tools.iter().map(Tool::from).collect(),
            messages: [Message::System { content: system }],
        })?;
        bytes.truncate(bytes.len() - END.len());
        Ok(Self { bytes, turns: 0, number: *history })
    }

    fn add(&mut self, turns: &[Turn]) -> serde_json::Result<()> {
        for turn in turns {
            self.bytes.push(b',');
            match turn {
                Turn::User(content) => serde_json::to_writer(&mut self.bytes, &Message::User { content })?,
                Turn::Assistant(message) => serde_json::to_writer(&mut self.bytes, message)?,
                Turn::ToolResult { id, text } => {
                    serde_json::to_writer(&mut self.bytes, &Message::Tool { tool_call_id: id, content: text })?;
                }
            }
        }
        Ok(())
    }
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
    messages: [Message<'a>; 1],
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
            output_schema: None,
            digest: Digest::of_bytes(b"x"),
            source: ToolSource::Server,
            read_only: true,
            idempotent: true,
            visible: true,
        }
    }

    fn request<'a>(turns: &'a [Turn], tools: &'a [CatalogueTool], temperature: Option<f64>) -> ModelRequest<'a> {
        ModelRequest {
            stage: Stage::Plan,
            model: "default",
            system: "Be kind.".into(),
            turns: turns.into(),
            history: 0,
            tools,
            temperature,
            reserve: 7,
        }
    }

    fn text(turns: &[Turn], tools: &[CatalogueTool], temperature: Option<f64>) -> String {
        let body = body("gpt-5", "uid-1", &request(turns, tools, temperature)).unwrap();
        String::from_utf8(body.to_vec()).unwrap()
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
    #[test]
    fn a_history_is_written_on_as_if_each_request_stood_alone() {
        let mut turns = vec![Turn::User("Refund A-17".into())];
        let mut history = History::default();
        for n in 0..4 {
            for _ in 0..2 {
                let body = history.body("gpt-5", "uid-1", &request(&turns, &[tool()], Some(0.7))).unwrap();
                assert_eq!(body, text(&turns, &[tool()], Some(0.7)));
            }
            turns.push(Turn::Assistant(json!({"role": "assistant", "content": n})));
            turns.push(Turn::ToolResult { id: format!("c{n}"), text: "paid ".repeat(n) });
        }
    }

    #[test]
    fn another_history_is_written_anew() {
        let mut turns =
            vec![Turn::User("Refund A-17".into()), Turn::ToolResult { id: "c1".into(), text: "long".into() }];
        let mut history = History::default();
        let before = history.body("gpt-5", "uid-1", &request(&turns, &[], None)).unwrap();
        turns[1] = Turn::ToolResult { id: "c1".into(), text: "cut".into() };
        let swept = ModelRequest { history: 7, ..request(&turns, &[], None) };
        let after = history.body("gpt-5", "uid-1", &swept).unwrap();
        assert_ne!(before, after);
        assert_eq!(after, text(&turns, &[], None));
    }
}
