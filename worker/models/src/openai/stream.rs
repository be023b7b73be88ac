//! Assembles a streamed answer from the deltas of one message. The last event is `[DONE]`.

mod delta;

use super::answer::{Usage, build_answer};
use crate::lenient::lenient;
use crate::protocol::AnswerStream;
use crate::protocol::Error;
use bloomery_engine::event::Answer;
use serde::Deserialize;
use serde_json::{Map, Value};

/// The data of the last event.
const DONE: &str = "[DONE]";

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default, deserialize_with = "lenient")]
    usage: Option<Usage>,
    #[serde(default)]
    error: Option<Value>,
}

#[derive(Deserialize)]
struct Choice {
    #[serde(default)]
    index: u64,
    #[serde(default)]
    delta: Option<Map<String, Value>>,
    #[serde(default)]
    finish_reason: Option<String>,
}

/// The answer so far.
#[derive(Debug, Default)]
pub(crate) struct StreamedAnswer {
    message: Option<Map<String, Value>>,
    finish_reason: Option<String>,
    usage: Option<Usage>,
    size: usize,
}

impl AnswerStream for StreamedAnswer {
    fn push(&mut self, data: &str) -> Result<bool, Error> {
        if data.trim() == DONE {
            return Ok(true);
        }
        let chunk: Chunk = serde_json::from_str(data)
            .map_err(|error| Error::unreadable(format!("it is not a chunk of a chat completion ({error})"), data))?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(Error::Provider(error));
        }
        if chunk.usage.is_some() {
            self.usage = chunk.usage;
        }
        // Requests ask for only one choice.
        if let Some(choice) = chunk.choices.into_iter().find(|choice| choice.index == 0) {
            self.add_choice(choice)?;
        }
        Ok(false)
    }

    fn size(&self) -> usize {
        self.size
    }

    fn finish(self: Box<Self>) -> Result<Answer, Error> {
        let Some(mut message) = self.message else {
            return Err(Error::unreadable("it holds no choice", DONE));
        };
        delta::finish(&mut message);
        build_answer(message, self.finish_reason.as_deref(), self.usage.unwrap_or_default())
    }
}

impl StreamedAnswer {
    fn add_choice(&mut self, choice: Choice) -> Result<(), Error> {
        let message = self.message.get_or_insert_default();
        if let Some(delta) = choice.delta {
            self.size += delta.values().map(delta::size).sum::<usize>();
            delta::add(message, delta)?;
        }
        if choice.finish_reason.is_some() {
            self.finish_reason = choice.finish_reason;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
