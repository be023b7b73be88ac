//! Checks the messages of a request: their roles, and that each call has its result.

use std::collections::BTreeSet;

use serde_json::Value;

use super::content;
use super::prompt::{blocks, type_of};
use crate::model_server::request::Request;
use crate::model_server::violation::{BrokenRule, Rule};

/// Consecutive messages of one role.
struct Turn {
    /// The index of the first message.
    index: usize,
    is_user: bool,
    blocks: Vec<Value>,
}

pub(super) fn check(request: &Request, broken: &mut Vec<BrokenRule>) {
    let messages = request.body.get("messages").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    if messages.is_empty() {
        broken.push((Rule::MessageShape, "messages: at least one message is required".to_owned()));
    }
    for (index, message) in messages.iter().enumerate() {
        content::check(index, message, broken);
    }
    let turns = turns(messages);
    if turns.first().is_some_and(|turn| !turn.is_user) {
        broken.push((Rule::Roles, "messages: first message must use the \"user\" role".to_owned()));
    }
    if turns.last().is_some_and(|turn| !turn.is_user) {
        let why =
            "This model does not support assistant message prefill. The conversation must end with a user message.";
        broken.push((Rule::Roles, why.to_owned()));
    }
    check_calls(&turns, broken);
    if request.tools.is_empty() && turns.iter().flat_map(|turn| &turn.blocks).any(is_call_or_result) {
        let why = "Requests which include `tool_use` or `tool_result` blocks must define tools.";
        broken.push((Rule::RequiredFields, why.to_owned()));
    }
}

fn is_call_or_result(block: &Value) -> bool {
    matches!(type_of(block), "tool_use" | "tool_result")
}

fn turns(messages: &[Value]) -> Vec<Turn> {
    let mut turns: Vec<Turn> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        let is_user = match message.get("role").and_then(Value::as_str) {
            Some("user") => true,
            Some("assistant") => false,
            _ => continue,
        };
        let content = blocks(message.get("content"));
        match turns.last_mut() {
            Some(turn) if turn.is_user == is_user => turn.blocks.extend(content),
            _ => turns.push(Turn { index, is_user, blocks: content }),
        }
    }
    turns
}

/// Checks that each call has exactly one result, at the beginning of the user's next turn.
fn check_calls(turns: &[Turn], broken: &mut Vec<BrokenRule>) {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&str> = Vec::new();
    for turn in turns {
        let Turn { index, is_user, blocks } = turn;
        let mut report = |rule: Rule, why: String| broken.push((rule, format!("messages.{index}{why}")));
        if *is_user {
            let waiting = std::mem::take(&mut open);
            check_results(turn, &waiting, &mut report);
            continue;
        }
        for block in blocks.iter().filter(|block| type_of(block) == "tool_use") {
            let id = id(block, "id");
            if !seen.insert(id) {
                report(Rule::UniqueCallIds, format!(".content: `tool_use` ids must be unique: {id}"));
            }
            open.push(id);
        }
    }
    // Calls of the last turn need no check: a request that ends with a turn of the assistant is already reported
    // (`Rule::Roles`).
}

fn check_results(turn: &Turn, waiting: &[&str], report: &mut impl FnMut(Rule, String)) {
    let results = || turn.blocks.iter().filter(|block| type_of(block) == "tool_result");
    let leading = turn.blocks.iter().take_while(|block| type_of(block) == "tool_result");
    let answered: BTreeSet<&str> = leading.map(|block| id(block, "tool_use_id")).collect();
    let missing: Vec<&str> = waiting.iter().copied().filter(|id| !answered.contains(id)).collect();
    if !missing.is_empty() {
        report(
            Rule::OneResultPerCall,
            format!(
                ": `tool_use` ids were found without `tool_result` blocks immediately after: {}. Each `tool_use` block \
                 must have a corresponding `tool_result` block in the next message.",
                missing.join(", ")
            ),
        );
    }
    let mut result_ids = BTreeSet::new();
    for block in results() {
        let id = id(block, "tool_use_id");
        if !waiting.contains(&id) {
            report(
                Rule::ResultHasCall,
                format!(
                    ".content: unexpected `tool_use_id` found in `tool_result` blocks: {id}. Each `tool_result` block \
                     must have a corresponding `tool_use` block in the previous message."
                ),
            );
        }
        if !result_ids.insert(id) {
            let why = format!(
                ".content: each tool_use must have a single result. Found multiple `tool_result` blocks with id: {id}"
            );
            report(Rule::OneResultPerCall, why);
        }
    }
}

fn id<'a>(block: &'a Value, name: &str) -> &'a str {
    block.get(name).and_then(Value::as_str).unwrap_or_default()
}
