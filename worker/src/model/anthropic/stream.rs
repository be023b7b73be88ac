//! Folding a streamed answer of Anthropic's: blocks that begin, grow and end, until `message_stop`.

use super::answer::{Block, Stop, Usage, answer};
use crate::model::no_answer::NoAnswer;
use crate::model::told::if_readable;
use crate::model::wire::Fold;
use bloomery_engine::event::Answer;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The most blocks of a message.
const MAX_BLOCKS: usize = 1024;

/// An event. Those of types that nobody here knows are passed over, as the provider asks.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Event {
    MessageStart {
        message: Start,
    },
    ContentBlockStart {
        index: usize,
        content_block: Map<String, Value>,
    },
    ContentBlockDelta {
        index: usize,
        delta: Delta,
    },
    MessageDelta {
        delta: Stop,
        #[serde(default, deserialize_with = "if_readable")]
        usage: Option<Usage>,
    },
    MessageStop,
    Error {
        error: Value,
    },
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
struct Start {
    #[serde(default, deserialize_with = "if_readable")]
    usage: Option<Usage>,
}

#[derive(Deserialize)]
#[serde(tag = "type")]
enum Delta {
    #[serde(rename = "text_delta")]
    Text { text: String },
    #[serde(rename = "thinking_delta")]
    Thinking { thinking: String },
    #[serde(rename = "signature_delta")]
    Signature { signature: String },
    #[serde(rename = "input_json_delta")]
    InputJson { partial_json: String },
    #[serde(rename = "citations_delta")]
    Citations { citation: Value },
    #[serde(other)]
    Other,
}

/// The answer so far.
#[derive(Debug, Default)]
pub(in crate::model) struct Folded {
    begun: bool,
    blocks: Vec<Block>,
    stop: Stop,
    usage: Usage,
    held: usize,
}

impl Fold for Folded {
    fn event(&mut self, data: &str) -> Result<bool, NoAnswer> {
        let event = serde_json::from_str(data)
            .map_err(|error| NoAnswer::unreadable(format!("it is no event of a message ({error})"), data))?;
        match event {
            Event::MessageStart { message } => {
                self.begun = true;
                self.count(message.usage);
            }
            Event::ContentBlockStart { index, content_block } => {
                if index != self.blocks.len() || index >= MAX_BLOCKS {
                    return Err(NoAnswer::unreadable("its blocks do not follow one another", data));
                }
                self.held += data.len();
                self.blocks.push(Block { fields: content_block, input: String::new() });
            }
            Event::ContentBlockDelta { index, delta } => {
                let Some(block) = self.blocks.get_mut(index) else {
                    return Err(NoAnswer::unreadable("it adds to a block that has not begun", data));
                };
                self.held += add(block, delta);
            }
            Event::MessageDelta { delta, usage } => {
                self.stop = delta;
                self.count(usage);
            }
            Event::MessageStop => return Ok(true),
            Event::Error { error } => return Err(NoAnswer::Error(error)),
            Event::Other => {}
        }
        Ok(false)
    }

    fn held(&self) -> usize {
        self.held
    }

    fn answer(self: Box<Self>) -> Result<Answer, NoAnswer> {
        if !self.begun {
            return Err(NoAnswer::unreadable("it ends before it has begun", ""));
        }
        let blocks = self.blocks.into_iter().map(|mut block| {
            // A call without arguments has them in its beginning, if anywhere.
            if block.input.is_empty() {
                block.input = block.fields.get("input").map(Value::to_string).unwrap_or_default();
            }
            block
        });
        answer(blocks.collect(), self.stop, self.usage)
    }
}

impl Folded {
    /// Counts are cumulative, and those that do not change are not always repeated.
    fn count(&mut self, usage: Option<Usage>) {
        let Some(usage) = usage else { return };
        let own = &mut self.usage;
        own.input = usage.input.or(own.input);
        own.cache_made = usage.cache_made.or(own.cache_made);
        own.cache_read = usage.cache_read.or(own.cache_read);
        own.output = usage.output.or(own.output);
    }
}

/// Adds to a block; gives how many bytes.
fn add(Block { fields, input }: &mut Block, delta: Delta) -> usize {
    match delta {
        Delta::Text { text } => append(fields, "text", &text),
        Delta::Thinking { thinking } => append(fields, "thinking", &thinking),
        Delta::Signature { signature } => append(fields, "signature", &signature),
        Delta::InputJson { partial_json } => {
            input.push_str(&partial_json);
            partial_json.len()
        }
        Delta::Citations { citation } => {
            let size = citation.to_string().len();
            match fields.get_mut("citations") {
                Some(Value::Array(citations)) => citations.push(citation),
                _ => {
                    fields.insert("citations".to_owned(), json!([citation]));
                }
            }
            size
        }
        Delta::Other => 0,
    }
}

fn append(fields: &mut Map<String, Value>, name: &str, more: &str) -> usize {
    match fields.get_mut(name) {
        Some(Value::String(text)) => text.push_str(more),
        _ => {
            fields.insert(name.to_owned(), json!(more));
        }
    }
    more.len()
}

#[cfg(test)]
mod tests;
