//! Checks the messages of a request: their fields, and that each call has its result.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::tools::is_valid_name;
use crate::model_server::request::{Item, Kind};
use crate::model_server::violation::{BrokenRule, Rule};

pub(super) fn check(items: &[Item], broken: &mut Vec<BrokenRule>) {
    let mut history = History { broken, seen: BTreeSet::new(), open: BTreeMap::new() };
    for (index, Item { kind, raw, .. }) in items.iter().enumerate() {
        match kind {
            Kind::System | Kind::User => {
                history.check_open_calls(index);
                history.check_content(index, raw, /*is_optional*/ false);
            }
            Kind::Assistant => {
                history.check_open_calls(index);
                history.check_answer(index, raw);
            }
            Kind::Result => history.check_result(index, raw),
            Kind::Unknown => history.report(Rule::MessageShape, index, "`role` is missing or unknown"),
        }
    }
    history.check_open_calls(items.len());
}

/// Returns the tool calls of an assistant message.
fn tool_calls(message: &Value) -> &[Value] {
    message.get("tool_calls").and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The state of the check, message by message.
struct History<'a> {
    broken: &'a mut Vec<BrokenRule>,
    /// All call ids so far.
    seen: BTreeSet<&'a str>,
    /// The calls of the last answer. The value is true if the call has its result.
    open: BTreeMap<&'a str, bool>,
}

impl<'a> History<'a> {
    fn report(&mut self, rule: Rule, index: usize, what: &str) {
        self.broken.push((rule, format!("messages[{index}]: {what}")));
    }

    /// Reports the calls of the last answer that have no result. `index` is the index after their results.
    fn check_open_calls(&mut self, index: usize) {
        for (id, answered) in std::mem::take(&mut self.open) {
            if !answered {
                self.report(Rule::OneResultPerCall, index, &format!("call `{id}` has no result before this message"));
            }
        }
    }

    fn check_content(&mut self, index: usize, message: &Value, is_optional: bool) {
        let is_valid = match message.get("content") {
            Some(Value::String(_) | Value::Array(_)) => true,
            Some(Value::Null) | None => is_optional,
            Some(_) => false,
        };
        if !is_valid {
            self.report(Rule::MessageShape, index, "`content` is neither text nor a list of parts");
        }
    }

    fn check_answer(&mut self, index: usize, message: &'a Value) {
        let calls = tool_calls(message);
        self.check_content(index, message, !calls.is_empty());
        if calls.is_empty() && message.get("tool_calls").is_some_and(|calls| !calls.is_null()) {
            self.report(Rule::MessageShape, index, "`tool_calls` is not a list of calls, or is empty");
        }
        for call in calls {
            self.check_call(index, call);
        }
    }

    fn check_call(&mut self, index: usize, call: &'a Value) {
        let name = call.pointer("/function/name").and_then(Value::as_str).unwrap_or_default();
        if !is_valid_name(name) {
            self.report(Rule::ToolNames, index, &format!("call of `{name}`: does not match ^[A-Za-z0-9_-]{{1,64}}$"));
        }
        if call.get("type").and_then(Value::as_str) != Some("function") {
            self.report(Rule::MessageShape, index, &format!("call of `{name}`: `type` is not `function`"));
        }
        if !call.pointer("/function/arguments").is_some_and(Value::is_string) {
            self.report(Rule::ArgumentsAreText, index, &format!("call of `{name}`: `arguments` is not a string"));
        }
        match call.get("id").and_then(Value::as_str) {
            None => self.report(Rule::MessageShape, index, &format!("call of `{name}`: it has no id")),
            Some(id) => {
                if !self.seen.insert(id) {
                    self.report(Rule::UniqueCallIds, index, &format!("call id `{id}` occurs a second time"));
                }
                self.open.insert(id, false);
            }
        }
    }

    fn check_result(&mut self, index: usize, message: &'a Value) {
        self.check_content(index, message, /*is_optional*/ false);
        let Some(id) = message.get("tool_call_id").and_then(Value::as_str) else {
            return self.report(Rule::ResultHasCall, index, "a result without `tool_call_id`");
        };
        match self.open.insert(id, true) {
            Some(false) => {}
            Some(true) => {
                self.report(Rule::OneResultPerCall, index, &format!("call `{id}` gets a second result"));
            }
            None => {
                self.report(Rule::ResultHasCall, index, &format!("no call `{id}` is waiting for a result"));
            }
        }
    }
}
