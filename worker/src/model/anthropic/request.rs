//! A request of Anthropic's: the history last, so that a request begins with the bytes of the one before it.
//!
//! Two marks say what the provider keeps in its cache. One stands at the system prompt, and so covers the tools before
//! it. The other stands above everything, and means the latest turn: no mark moves through the history.

use super::answer::{NOTHING, input};
use crate::model::extra::Extra;
use crate::model::wire::{Asking, Piece, Writer};
use bloomery_engine::stage_prompt::AnswerSchema;
use bloomery_engine::tool::CatalogueTool;
use serde::Serialize;
use serde_json::{Map, Value, json};

/// The highest temperature that the provider takes.
const MAX_TEMPERATURE: f64 = 1.0;

/// What a request without turns ends with.
const END: &[u8] = b"]}";

/// What a request ends with whose last message is the user's: its list of blocks is still open.
const END_OF_BLOCKS: &[u8] = b"]}]}";

/// Begins a request.
pub(in crate::model) fn begin(asking: Asking<'_>) -> serde_json::Result<(Vec<u8>, Box<dyn Writer>)> {
    let Asking { endpoint, user, request, refused } = asking;
    let temperature = request.temperature.filter(|_| refused.allows(Extra::Temperature));
    let mark = |extra| refused.allows(extra).then_some(CacheControl::EPHEMERAL);
    let mut bytes = serde_json::to_vec(&Body {
        model: &endpoint.model,
        max_tokens: endpoint.max_output(),
        metadata: refused.allows(Extra::User).then_some(Metadata { user_id: user }),
        stream: refused.allows(Extra::Stream),
        temperature: temperature.map(|temperature| temperature.min(MAX_TEMPERATURE)),
        cache_control: mark(Extra::Cache),
        output_config: request
            .answer_schema
            .as_ref()
            .filter(|_| refused.allows(Extra::AnswerSchema))
            .map(OutputConfig::from),
        tools: request.tools.iter().map(Tool::from).collect(),
        system: [System { r#type: "text", text: &request.system, cache_control: mark(Extra::SystemCache) }],
        messages: [],
    })?;
    bytes.truncate(bytes.len() - END.len());
    Ok((bytes, Box::<Messages>::default()))
}

/// Writes messages. The user's turn holds all results of the calls before it, and what else the user says.
#[derive(Debug, Default)]
struct Messages {
    begun: bool,
    /// The last message is the user's.
    open: bool,
}

impl Messages {
    /// Begins a block of the user's, in the message that is open or in a new one.
    fn user(&mut self, bytes: &mut Vec<u8>) {
        if self.open {
            bytes.push(b',');
        } else {
            self.next(bytes);
            bytes.extend_from_slice(br#"{"role":"user","content":["#);
            self.open = true;
        }
    }

    /// Begins a message of the assistant's.
    fn assistant(&mut self, bytes: &mut Vec<u8>) {
        if std::mem::take(&mut self.open) {
            bytes.extend_from_slice(b"]}");
        }
        self.next(bytes);
    }

    fn next(&mut self, bytes: &mut Vec<u8>) {
        if std::mem::replace(&mut self.begun, true) {
            bytes.push(b',');
        }
    }
}

impl Writer for Messages {
    fn add(&mut self, bytes: &mut Vec<u8>, piece: &Piece<'_>) -> serde_json::Result<()> {
        match piece {
            Piece::User(text) => {
                self.user(bytes);
                serde_json::to_writer(bytes, &Block::Text { text: spoken(text) })
            }
            Piece::Result { id, text } => {
                self.user(bytes);
                serde_json::to_writer(bytes, &Block::ToolResult { tool_use_id: id, content: text })
            }
            Piece::Own(message) => {
                self.assistant(bytes);
                bytes.extend_from_slice(message.as_bytes());
                Ok(())
            }
            Piece::Told { text, calls } => {
                self.assistant(bytes);
                let words = (calls.is_empty() || !text.trim().is_empty()).then(|| Block::Text { text: spoken(text) });
                let calls = calls.iter().map(|call| Block::ToolUse {
                    id: &call.id,
                    name: &call.name,
                    input: input(&call.arguments),
                });
                let content: Vec<Block<'_>> = words.into_iter().chain(calls).collect();
                serde_json::to_writer(bytes, &Assistant { role: "assistant", content })
            }
        }
    }

    fn end(&self) -> &'static [u8] {
        if self.open { END_OF_BLOCKS } else { END }
    }
}

/// A block of text must not be blank.
fn spoken(text: &str) -> &str {
    if text.trim().is_empty() { NOTHING } else { text }
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
    fn from(form: &'a AnswerSchema) -> Self {
        Self { format: Format { r#type: "json_schema", schema: &form.schema } }
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
        // It must be there, and can be nothing else.
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
