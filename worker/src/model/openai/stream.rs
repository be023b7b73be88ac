//! Folding a streamed answer of OpenAI's: deltas of one message, until `[DONE]`.

mod delta;

use super::answer::{Usage, answer};
use crate::model::no_answer::NoAnswer;
use crate::model::told::if_readable;
use crate::model::wire::Fold;
use bloomery_engine::event::Answer;
use serde::Deserialize;
use serde_json::{Map, Value};

/// What says that the stream is whole.
const DONE: &str = "[DONE]";

#[derive(Deserialize)]
struct Chunk {
    #[serde(default)]
    choices: Vec<Choice>,
    #[serde(default, deserialize_with = "if_readable")]
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
pub(in crate::model) struct Folded {
    message: Option<Map<String, Value>>,
    finish_reason: Option<String>,
    usage: Option<Usage>,
    held: usize,
}

impl Fold for Folded {
    fn event(&mut self, data: &str) -> Result<bool, NoAnswer> {
        if data.trim() == DONE {
            return Ok(true);
        }
        let chunk: Chunk = serde_json::from_str(data)
            .map_err(|error| NoAnswer::unreadable(format!("it is no chunk of a chat completion ({error})"), data))?;
        if let Some(error) = chunk.error.filter(|error| !error.is_null()) {
            return Err(NoAnswer::Error(error));
        }
        if chunk.usage.is_some() {
            self.usage = chunk.usage;
        }
        // One choice is asked for.
        if let Some(choice) = chunk.choices.into_iter().find(|choice| choice.index == 0) {
            self.choice(choice)?;
        }
        Ok(false)
    }

    fn held(&self) -> usize {
        self.held
    }

    fn answer(self: Box<Self>) -> Result<Answer, NoAnswer> {
        let Some(mut message) = self.message else {
            return Err(NoAnswer::unreadable("it holds no choice", DONE));
        };
        delta::finish(&mut message);
        answer(message, self.finish_reason.as_deref(), self.usage.unwrap_or_default())
    }
}

impl Folded {
    fn choice(&mut self, choice: Choice) -> Result<(), NoAnswer> {
        let message = self.message.get_or_insert_default();
        if let Some(delta) = choice.delta {
            self.held += delta.values().map(delta::weight).sum::<usize>();
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
