//! Assembles a streamed answer from events that begin, extend and end blocks. The last event is `message_stop`.

use super::answer::{Block, Stop, Usage, build_answer};
use crate::lenient::lenient;
use crate::protocol::AnswerStream;
use crate::protocol::Error;
use bloomery_engine::event::Answer;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The largest number of blocks of a message.
const MAX_BLOCKS: usize = 1024;

/// An event of the stream. Events of unknown types are ignored, as the provider requires.
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
        #[serde(default, deserialize_with = "lenient")]
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
    #[serde(default, deserialize_with = "lenient")]
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
pub(crate) struct StreamedAnswer {
    begun: bool,
    blocks: Vec<Block>,
    stop: Stop,
    usage: Usage,
    /// The size of the blocks so far, in bytes.
    size: usize,
}

impl AnswerStream for StreamedAnswer {
    fn push(&mut self, data: &str) -> Result<bool, Error> {
        let event = serde_json::from_str(data)
            .map_err(|error| Error::unreadable(format!("it is not an event of a message ({error})"), data))?;
        match event {
            Event::MessageStart { message } => {
                self.begun = true;
                self.update_usage(message.usage);
            }
            Event::ContentBlockStart { index, content_block } => {
                if index != self.blocks.len() || index >= MAX_BLOCKS {
                    return Err(Error::unreadable("the index of a block is out of order", data));
                }
                self.size += data.len();
                self.blocks.push(Block { fields: content_block, input: String::new() });
            }
            Event::ContentBlockDelta { index, delta } => {
                let Some(block) = self.blocks.get_mut(index) else {
                    return Err(Error::unreadable("it extends a block that has not begun", data));
                };
                self.size += add(block, delta);
            }
            Event::MessageDelta { delta, usage } => {
                self.stop = delta;
                self.update_usage(usage);
            }
            Event::MessageStop => return Ok(true),
            Event::Error { error } => return Err(Error::Provider(error)),
            Event::Other => {}
        }
        Ok(false)
    }

    fn size(&self) -> usize {
        self.size
    }

    fn finish(self: Box<Self>) -> Result<Answer, Error> {
        if !self.begun {
            return Err(Error::unreadable("it ends before its first event", ""));
        }
        let blocks = self.blocks.into_iter().map(|mut block| {
            // If a call has no deltas, its arguments are in the event that began it.
            if block.input.is_empty() {
                block.input = block.fields.get("input").map(Value::to_string).unwrap_or_default();
            }
            block
        });
        build_answer(blocks.collect(), self.stop, self.usage)
    }
}

impl StreamedAnswer {
    /// Updates the usage. New counts replace earlier ones, because counts are cumulative. The provider may omit an unchanged count.
    fn update_usage(&mut self, usage: Option<Usage>) {
        let Some(usage) = usage else { return };
        let own = &mut self.usage;
        own.input = usage.input.or(own.input);
        own.cache_written = usage.cache_written.or(own.cache_written);
        own.cache_read = usage.cache_read.or(own.cache_read);
        own.output = usage.output.or(own.output);
    }
}

/// Adds a delta to a block. Returns the size of the delta in bytes.
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
