//! Checks requests: finds errors that a provider would refuse, and changes of the history that break the prompt cache.
//!
//! This module has the rules that are the same for every provider. `wire` has the rules of each protocol.

use serde_json::Value;

use super::request::{Item, Kind, Request};
use super::violation::{BrokenRule, Rule};
use super::wire;

/// The part of a request that the next request is compared with.
#[derive(Clone, Debug)]
pub(super) struct EarlierRequest {
    items: Vec<Item>,
    tools: Vec<Value>,
    /// The thoughts in the answer to this request. The next request must return them unchanged.
    pub(super) thoughts: Vec<Value>,
}

impl EarlierRequest {
    pub(super) fn new(request: &Request) -> Self {
        Self { items: request.items.clone(), tools: request.tools.clone(), thoughts: Vec::new() }
    }
}

/// Returns all violations of a request. `earlier` is the previous request of its conversation.
pub(super) fn check(request: &Request, earlier: Option<&EarlierRequest>) -> Vec<BrokenRule> {
    let mut broken = Vec::new();
    if request.items.first().is_none_or(|item| item.kind != Kind::System) {
        broken.push((Rule::SystemFirst, "the request does not begin with a system prompt".to_owned()));
    }
    broken.extend(wire::check(request));
    if let Some(earlier) = earlier {
        check_prefix(request, earlier, &mut broken);
    }
    broken
}

fn check_prefix(request: &Request, earlier: &EarlierRequest, broken: &mut Vec<BrokenRule>) {
    let pairs = earlier.items.iter().zip(&request.items);
    let same = pairs.take_while(|(before, now)| before.raw == now.raw || is_offloaded(before, now)).count();
    if let Some(first) = earlier.items.get(same) {
        let sentence = format!(
            "{} differs from the previous request, which had {} messages; this one has {}",
            first.at,
            earlier.items.len(),
            request.items.len()
        );
        broken.push((Rule::SamePrefix, sentence));
    } else if let Some(answer) = request.items.get(same).filter(|item| item.kind == Kind::Assistant) {
        check_thoughts(answer, &earlier.thoughts, broken);
    }
    if earlier.tools != request.tools {
        broken.push((Rule::SameTools, "`tools` differ from the previous request".to_owned()));
    }
}

fn check_thoughts(answer: &Item, thoughts: &[Value], broken: &mut Vec<BrokenRule>) {
    let content = answer.raw.get("content").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if !content.starts_with(thoughts) {
        let sentence = format!(
            "{}: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These \
             blocks must remain as they were in the original response.",
            answer.at
        );
        broken.push((Rule::ThinkingKept, sentence));
    }
}

/// Returns whether a result was replaced by its excerpt. No other change of the history is permitted.
fn is_offloaded(before: &Item, now: &Item) -> bool {
    before.kind == Kind::Result
        && now.kind == Kind::Result
        && before.call == now.call
        && now.text.len() < before.text.len()
        && now.text.contains("focus_read, handle sha256:")
}
