//! The answer of a turn, independent of the protocol.

use super::cache::{Cached, tokens};
use super::place::Place;
use super::request::Request;
use super::script::{Stop, Turn, Usage};
use bloomery_crds::v1alpha1::Stage;

/// An answer of the model.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// The name of the answer. Each protocol adds a prefix to build its id.
    pub(super) name: String,
    pub(super) model: String,
    pub(super) thinking: Option<String>,
    pub(super) redacted_thinking: Option<String>,
    pub(super) text: Option<Text>,
    pub(super) calls: Vec<Call>,
    pub(super) stop: Option<Stop>,
    pub(super) usage: Usage,
    /// True if the answer is written in a form that its protocol permits, but servers seldom use.
    pub(super) unusual: bool,
}

/// The text of an answer.
#[derive(Clone, Debug)]
pub(super) enum Text {
    Scripted(String),
    /// This number of meaningless bytes, which are generated while they are sent.
    Filler(usize),
}

/// One tool call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    /// The arguments as the model wrote them, possibly not valid JSON.
    pub(super) arguments: String,
}

/// The length of one block of filler, in bytes.
pub(super) const FILLER_BLOCK_BYTES: usize = 64 * 1024;

/// The field that an unusual answer has in each of its objects.
pub(super) const UNKNOWN_FIELD: &str = "x_unknown";

/// The placeholder for filler and for the arguments of calls while an answer is written as JSON. No script contains it.
pub(super) const PLACEHOLDER: char = '\u{E000}';

impl Answer {
    /// Builds the answer to `request` with `turn`.
    ///
    /// The same request always gets the same answer, so a retry after a lost answer does not change the conversation.
    pub(super) fn new(request: &Request, place: Place, turn: &Turn, cached: Cached) -> Self {
        let position = place.turn;
        let calls = turn.calls.iter().enumerate().map(|(index, call)| Call {
            id: call.id.clone().unwrap_or_else(|| format!("call_{position}_{index}")),
            name: call.name.clone(),
            arguments: call.arguments_text(),
        });
        let mut answer = Self {
            name: name(request, place),
            model: request.model.clone(),
            thinking: turn.thinking.clone(),
            redacted_thinking: turn.redacted_thinking.clone(),
            text: turn.text().map(Text::Scripted),
            calls: calls.collect(),
            stop: turn.stop,
            usage: Usage::default(),
            unusual: turn.unusual,
        };
        answer.usage = turn.usage.unwrap_or_else(|| answer.estimate(request, cached));
        answer
    }

    /// Builds an answer of this many bytes of filler.
    pub(super) fn huge(request: &Request, place: Place, bytes: usize) -> Self {
        let mut answer = Self::new(request, place, &Turn::default(), Cached::default());
        answer.text = Some(Text::Filler(bytes));
        answer.usage.completion_tokens = (bytes / 4) as u64;
        answer
    }

    /// Returns whether the answer has neither text nor calls.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_none() && self.calls.is_empty()
    }

    /// Returns the text for an answer without streaming: [`PLACEHOLDER`] if the text is filler.
    pub(super) fn written_text(&self) -> Option<String> {
        match self.text.as_ref()? {
            Text::Scripted(text) => Some(text.clone()),
            Text::Filler(_) => Some(PLACEHOLDER.to_string()),
        }
    }

    /// Estimates the tokens of the request and the answer, at four bytes for each token.
    fn estimate(&self, request: &Request, cached: Cached) -> Usage {
        let prompt = tokens(request.items.iter().map(|item| &item.raw).chain(&request.tools));
        let said = self.written_text().map_or(0, |text| text.len());
        let thought = self.thinking.as_ref().map_or(0, String::len);
        let called: usize = self.calls.iter().map(|call| call.name.len() + call.arguments.len()).sum();
        let cached_tokens = cached.read.min(prompt);
        Usage {
            prompt_tokens: prompt,
            completion_tokens: ((said + thought + called) / 4).max(1) as u64,
            thinking_tokens: (thought / 4) as u64,
            cached_tokens,
            cache_write_tokens: cached.written.min(prompt - cached_tokens),
        }
    }
}

/// Returns one block of filler.
pub(super) fn filler_block() -> String {
    "x".repeat(FILLER_BLOCK_BYTES)
}

fn name(request: &Request, Place { stage, turn }: Place) -> String {
    match stage {
        Stage::Plan => format!("{}-{turn}", request.user_name()),
        other => format!("{}-{other}-{turn}", request.user_name()),
    }
}
