//! The answer of a turn, before a protocol gives it its shape.

use super::cache::{Cached, tokens};
use super::place::Place;
use super::request::Request;
use super::script::{Stop, Turn, Usage};
use bloomery_crds::v1alpha1::Stage;

/// What the model says.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// Names it; a protocol puts its own prefix before.
    pub(super) name: String,
    pub(super) model: String,
    pub(super) thinking: Option<String>,
    pub(super) redacted_thinking: Option<String>,
    pub(super) text: Option<Text>,
    pub(super) calls: Vec<Call>,
    pub(super) stop: Option<Stop>,
    pub(super) usage: Usage,
    /// Whether it is written as a protocol permits and servers seldom do.
    pub(super) unusual: bool,
}

/// The text of an answer.
#[derive(Clone, Debug)]
pub(super) enum Text {
    Said(String),
    /// So many bytes that mean nothing, made as they are sent.
    Filler(usize),
}

/// One tool call.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) id: String,
    pub(super) name: String,
    /// As the model wrote them, which need not be JSON.
    pub(super) arguments: String,
}

/// How many bytes of filler are sent at once, each time the same.
pub(super) const FILLER: usize = 64 * 1024;

/// The field that an unusual answer has in each of its objects.
pub(super) const UNKNOWN_FIELD: &str = "x_unknown";

/// Stands for filler in a text that is not sent yet, and for the arguments of calls: no script holds it.
pub(super) const MARK: char = '\u{E000}';

impl Answer {
    /// Builds the answer to `request` with `turn`.
    ///
    /// The same request always gets the same answer: a retry after a lost one must not look like
    /// another.
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
            text: turn.text().map(Text::Said),
            calls: calls.collect(),
            stop: turn.stop,
            usage: Usage::default(),
            unusual: turn.unusual,
        };
        answer.usage = turn.usage.unwrap_or_else(|| answer.estimate(request, cached));
        answer
    }

    /// Builds an answer of so many bytes.
    pub(super) fn huge(request: &Request, place: Place, bytes: usize) -> Self {
        let mut answer = Self::new(request, place, &Turn::default(), Cached::default());
        answer.text = Some(Text::Filler(bytes));
        answer.usage.completion_tokens = (bytes / 4) as u64;
        answer
    }

    /// Whether there is nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        self.text.is_none() && self.calls.is_empty()
    }

    /// Returns the text as it is written where an answer goes in one piece: the mark stands for filler.
    pub(super) fn written_text(&self) -> Option<String> {
        match self.text.as_ref()? {
            Text::Said(text) => Some(text.clone()),
            Text::Filler(_) => Some(MARK.to_string()),
        }
    }

    /// A token is about four bytes.
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

/// Text that means nothing, as much as is sent at once.
pub(super) fn filler() -> String {
    "x".repeat(FILLER)
}

fn name(request: &Request, Place { stage, turn }: Place) -> String {
    match stage {
        Stage::Plan => format!("{}-{turn}", request.user_name()),
        other => format!("{}-{other}-{turn}", request.user_name()),
    }
}
