//! Writes requests. The messages come last, so each request begins with the bytes of the previous request. Therefore the provider's
//! prompt cache applies.

use crate::optional_fields::OptionalField;
use crate::protocol::{RequestContext, TurnContent, TurnWriter};
use bloomery_engine::event::RequestedCall;
use bloomery_engine::stage_prompt::AnswerSchema;
use bloomery_engine::tool::CatalogueTool;
use serde::Serialize;
use serde_json::Value;

/// The end of every request, after its last message.
const END: &[u8] = b"]}";

/// Writes the beginning of a request, including the system prompt, which is the first message.
pub(crate) fn begin(context: RequestContext<'_>) -> serde_json::Result<(Vec<u8>, Box<dyn TurnWriter>)> {
    let RequestContext { endpoint, user, request, unsupported } = context;
    let streams = unsupported.allows(OptionalField::Stream);
    let (max_completion_tokens, max_tokens) = if unsupported.allows(OptionalField::CompletionTokens) {
        (endpoint.max_output_tokens, None)
    } else {
        (None, endpoint.max_output_tokens)
    };
    let mut bytes = serde_json::to_vec(&Body {
        model: &endpoint.model,
        user: unsupported.allows(OptionalField::User).then_some(user),
        max_completion_tokens,
        max_tokens,
        stream: streams,
        stream_options: (streams && unsupported.allows(OptionalField::StreamUsage))
            .then_some(StreamOptions { include_usage: true }),
        temperature: request.temperature.filter(|_| unsupported.allows(OptionalField::Temperature)),
        response_format: request
            .answer_schema
            .as_ref()
            .filter(|_| unsupported.allows(OptionalField::AnswerSchema))
            .map(ResponseFormat::from),
        tools: request.tools.iter().map(Tool::from).collect(),
        messages: [Message::System { content: &request.system }],
    })?;
    bytes.truncate(bytes.len() - END.len());
    Ok((bytes, Box::new(Messages)))
}

/// Writes messages. Each message is independent of the previous ones.
#[derive(Debug)]
struct Messages;

impl TurnWriter for Messages {
    fn append(&mut self, bytes: &mut Vec<u8>, content: &TurnContent<'_>) -> serde_json::Result<()> {
        bytes.push(b',');
        match content {
            TurnContent::User(content) => serde_json::to_writer(bytes, &Message::User { content }),
            TurnContent::OwnAnswer(message) => {
                bytes.extend_from_slice(message.as_bytes());
                Ok(())
            }
            TurnContent::OtherAnswer { text, calls } => {
                // With calls, null is the only form of empty content that all servers accept.
                let content = (calls.is_empty() || !text.is_empty()).then_some(text.as_str());
                let tool_calls = calls.iter().map(Call::from).collect();
                serde_json::to_writer(bytes, &Message::Assistant { content, tool_calls })
            }
            TurnContent::ToolResult { id, text } => {
                serde_json::to_writer(bytes, &Message::Tool { tool_call_id: id, content: text })
            }
        }
    }

    fn ending(&self) -> &'static [u8] {
        END
    }
}

/// The body of a request. It omits `parallel_tool_calls`, because some servers reject that field and parallel calls are the default.
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
    fn from(AnswerSchema { name, schema }: &'a AnswerSchema) -> Self {
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
    function: CalledFunction<'a>,
}

#[derive(Serialize)]
struct CalledFunction<'a> {
    name: &'a str,
    arguments: &'a str,
}

impl<'a> From<&'a RequestedCall> for Call<'a> {
    fn from(call: &'a RequestedCall) -> Self {
        let RequestedCall { id, name, arguments, secrets: _ } = call;
        let arguments = if arguments.is_empty() { "{}" } else { arguments };
        Self { id, r#type: "function", function: CalledFunction { name, arguments } }
    }
}

#[cfg(test)]
mod tests;
