//! Writes requests. The messages come last, so each request begins with the bytes of the previous request.
//!
//! Two fields `cache_control` set what the provider caches. The field of the system prompt covers the tools and the system prompt. The
//! field of the whole request covers everything up to the latest turn, so the messages need no such field.

use super::answer::{EMPTY_TEXT, input_from_arguments};
use crate::optional_fields::OptionalField;
use crate::protocol::{RequestContext, TurnContent, TurnWriter};
use bloomery_engine::stage_prompt::AnswerSchema;
use bloomery_engine::tool::CatalogueTool;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The highest temperature that the provider accepts.
const MAX_TEMPERATURE: f64 = 1.0;

/// The end of a request whose last message is complete.
const END: &[u8] = b"]}";

/// The end of a request whose last message is the user's, with an open list of blocks.
const END_OF_BLOCKS: &[u8] = b"]}]}";

/// Writes the beginning of a request, up to its list of messages.
pub(crate) fn begin(context: RequestContext<'_>) -> serde_json::Result<(Vec<u8>, Box<dyn TurnWriter>)> {
    let RequestContext { endpoint, user, request, unsupported } = context;
    let temperature = request.temperature.filter(|_| unsupported.allows(OptionalField::Temperature));
    let cache_control = |field| unsupported.allows(field).then_some(CacheControl::EPHEMERAL);
    let mut bytes = serde_json::to_vec(&Body {
        model: &endpoint.model,
        max_tokens: endpoint.max_output(),
        metadata: unsupported.allows(OptionalField::User).then_some(Metadata { user_id: user }),
        stream: unsupported.allows(OptionalField::Stream),
        temperature: temperature.map(|temperature| temperature.min(MAX_TEMPERATURE)),
        cache_control: cache_control(OptionalField::Cache),
        output_config: request
            .answer_schema
            .as_ref()
            .filter(|_| unsupported.allows(OptionalField::AnswerSchema))
            .map(OutputConfig::from),
        tools: request.tools.iter().map(Tool::from).collect(),
        system: [System {
            r#type: "text",
            text: &request.system,
            cache_control: cache_control(OptionalField::SystemCache),
        }],
        messages: [],
    })?;
    bytes.truncate(bytes.len() - END.len());
    Ok((bytes, Box::<Messages>::default()))
}

/// Writes messages. One user message holds all results of the preceding calls and the text of the user.
#[derive(Debug, Default)]
struct Messages {
    /// Whether a message was written.
    begun: bool,
    /// Whether the last message is from the user, so that blocks can be added to it.
    open: bool,
}

impl Messages {
    /// Begins a block of the user. It belongs to the open message, or to a new one.
    fn begin_user_block(&mut self, bytes: &mut Vec<u8>) {
        if self.open {
            bytes.push(b',');
        } else {
            self.separate(bytes);
            bytes.extend_from_slice(br#"{"role":"user","content":["#);
            self.open = true;
        }
    }

    /// Begins a message of the assistant.
    fn begin_assistant_message(&mut self, bytes: &mut Vec<u8>) {
        if std::mem::take(&mut self.open) {
            bytes.extend_from_slice(b"]}");
        }
        self.separate(bytes);
    }

    /// Writes a comma before each message except the first.
    fn separate(&mut self, bytes: &mut Vec<u8>) {
        if std::mem::replace(&mut self.begun, true) {
            bytes.push(b',');
        }
    }
}

impl TurnWriter for Messages {
    fn append(&mut self, bytes: &mut Vec<u8>, content: &TurnContent<'_>) -> serde_json::Result<()> {
        match content {
            TurnContent::User(text) => {
                self.begin_user_block(bytes);
                serde_json::to_writer(bytes, &Block::Text { text: non_blank(text) })
            }
            TurnContent::ToolResult { id, text } => {
                self.begin_user_block(bytes);
                serde_json::to_writer(bytes, &Block::ToolResult { tool_use_id: id, content: text })
            }
            TurnContent::OwnAnswer(message) => {
                self.begin_assistant_message(bytes);
                bytes.extend_from_slice(message.as_bytes());
                Ok(())
            }
            TurnContent::OtherAnswer { text, calls } => {
                self.begin_assistant_message(bytes);
                let text = (calls.is_empty() || !text.trim().is_empty()).then(|| Block::Text { text: non_blank(text) });
                let calls = calls.iter().map(|call| Block::ToolUse {
                    id: &call.id,
                    name: &call.name,
                    input: input_from_arguments(&call.arguments),
                });
                let content: Vec<Block<'_>> = text.into_iter().chain(calls).collect();
                serde_json::to_writer(bytes, &Assistant { role: "assistant", content })
            }
        }
    }

    fn ending(&self) -> &'static [u8] {
        if self.open { END_OF_BLOCKS } else { END }
    }
}

/// Returns the text for a block, which must not be blank.
fn non_blank(text: &str) -> &str {
    if text.trim().is_empty() { EMPTY_TEXT } else { text }
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    max_tokens: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Metadata<'a>>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_config: Option<OutputConfig<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'a>>,
    system: [System<'a>; 1],
    messages: [(); 0],
}

#[derive(Serialize)]
struct Metadata<'a> {
    user_id: &'a str,
}

#[derive(Serialize)]
struct CacheControl {
    r#type: &'static str,
}

impl CacheControl {
    const EPHEMERAL: Self = Self { r#type: "ephemeral" };
}

#[derive(Serialize)]
struct OutputConfig<'a> {
    format: Format<'a>,
}

#[derive(Serialize)]
struct Format<'a> {
    r#type: &'static str,
    schema: &'a Value,
}

impl<'a> From<&'a AnswerSchema> for OutputConfig<'a> {
    fn from(AnswerSchema { schema, .. }: &'a AnswerSchema) -> Self {
        Self { format: Format { r#type: "json_schema", schema } }
    }
}

#[derive(Serialize)]
struct Tool<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'a str,
    input_schema: Value,
}

impl<'a> From<&'a CatalogueTool> for Tool<'a> {
    fn from(tool: &'a CatalogueTool) -> Self {
        let CatalogueTool { alias, description, input_schema, .. } = tool;
        let mut schema = input_schema.as_object().cloned().unwrap_or_else(Map::new);
        // The provider requires this field.
        schema.entry("type").or_insert_with(|| json!("object"));
        Self { name: alias, description, input_schema: Value::Object(schema) }
    }
}

#[derive(Serialize)]
struct System<'a> {
    r#type: &'static str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    cache_control: Option<CacheControl>,
}

#[derive(Serialize)]
struct Assistant<'a> {
    role: &'static str,
    content: Vec<Block<'a>>,
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Block<'a> {
    Text { text: &'a str },
    ToolUse { id: &'a str, name: &'a str, input: Value },
    ToolResult { tool_use_id: &'a str, content: &'a str },
}

#[cfg(test)]
mod tests;
