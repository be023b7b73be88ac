//! A request of OpenAI's: the history last, so that a request begins with the bytes of the one before it, which is
//! what the provider's prompt cache is keyed by.

use crate::model::extra::Extra;
use crate::model::wire::{Asking, Piece, Writer};
use bloomery_engine::event::RequestedCall;
use bloomery_engine::stage_prompt::AnswerSchema;
use bloomery_engine::tool::CatalogueTool;
use serde::Serialize;
use serde_json::Value;

/// What every request ends with, after its last message.
const END: &[u8] = b"]}";

/// Begins a request, with the system prompt as its first message.
pub(in crate::model) fn begin(asking: Asking<'_>) -> serde_json::Result<(Vec<u8>, Box<dyn Writer>)> {
    let Asking { endpoint, user, request, refused } = asking;
    let streams = refused.allows(Extra::Stream);
    let (newer, older) = if refused.allows(Extra::CompletionTokens) {
        (endpoint.max_output_tokens, None)
    } else {
        (None, endpoint.max_output_tokens)
    };
    let mut bytes = serde_json::to_vec(&Body {
        model: &endpoint.model,
        user: refused.allows(Extra::User).then_some(user),
        max_completion_tokens: newer,
        max_tokens: older,
        stream: streams,
        stream_options: (streams && refused.allows(Extra::StreamUsage))
            .then_some(StreamOptions { include_usage: true }),
        temperature: request.temperature.filter(|_| refused.allows(Extra::Temperature)),
        response_format: request
            .answer_schema
            .as_ref()
            .filter(|_| refused.allows(Extra::AnswerSchema))
            .map(ResponseFormat::from),
        tools: request.tools.iter().map(Tool::from).collect(),
        messages: [Message::System { content: &request.system }],
    })?;
    bytes.truncate(bytes.len() - END.len());
    Ok((bytes, Box::new(Messages)))
}

/// Writes messages. There is nothing to know of those before.
#[derive(Debug)]
struct Messages;

impl Writer for Messages {
    fn add(&mut self, bytes: &mut Vec<u8>, piece: &Piece<'_>) -> serde_json::Result<()> {
        bytes.push(b',');
        match piece {
            Piece::User(content) => serde_json::to_writer(bytes, &Message::User { content }),
            Piece::Own(message) => {
                bytes.extend_from_slice(message.as_bytes());
                Ok(())
            }
            Piece::Told { text, calls } => {
                // Beside calls, null is the one form of no words that all servers take.
                let content = (calls.is_empty() || !text.is_empty()).then_some(text.as_str());
                let tool_calls = calls.iter().map(Call::from).collect();
                serde_json::to_writer(bytes, &Message::Assistant { content, tool_calls })
            }
            Piece::Result { id, text } => {
                serde_json::to_writer(bytes, &Message::Tool { tool_call_id: id, content: text })
            }
        }
    }

    fn end(&self) -> &'static [u8] {
        END
    }
}

/// There is no `parallel_tool_calls` in it, which some servers refuse: several calls in one answer are handled anyway.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    user: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<u64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<StreamOptions>,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    messages: [Message<'a>; 1],
}

#[derive(Serialize)]
struct StreamOptions {
    include_usage: bool,
}

#[derive(Serialize)]
struct ResponseFormat<'a> {
    r#type: &'static str,
    json_schema: JsonSchema<'a>,
}

#[derive(Serialize)]
struct JsonSchema<'a> {
    name: &'static str,
    strict: bool,
    schema: &'a Value,
}

impl<'a> From<&'a AnswerSchema> for ResponseFormat<'a> {
    fn from(form: &'a AnswerSchema) -> Self {
        let AnswerSchema { name, schema } = form;
        Self { r#type: "json_schema", json_schema: JsonSchema { name, strict: true, schema } }
    }
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
    System {
        content: &'a str,
    },
    User {
        content: &'a str,
    },
    Assistant {
        content: Option<&'a str>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        tool_calls: Vec<Call<'a>>,
    },
    Tool {
        tool_call_id: &'a str,
        content: &'a str,
    },
}

#[derive(Serialize)]
struct Call<'a> {
    id: &'a str,
    r#type: &'static str,
    function: Called<'a>,
}

#[derive(Serialize)]
struct Called<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl<'a> From<&'a RequestedCall> for Call<'a> {
    fn from(call: &'a RequestedCall) -> Self {
        let RequestedCall { id, name, arguments, secrets: _ } = call;
        let arguments = if arguments.is_empty() { "{}" } else { arguments };
        Self { id, r#type: "function", function: Called { name, arguments } }
    }
}

#[cfg(test)]
mod tests;
