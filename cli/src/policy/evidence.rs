//! The evidence for steps of workflows. A case names it by the position of an earlier call, and the engine by the event with the result.

use super::test_file::TestedCall;
use bloomery_engine::Event;
use bloomery_engine::core_tools::SUBGOAL_DONE;
use bloomery_engine::line::Entry;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The argument of `subgoal_done` that names the evidence.
const EVIDENCE: &str = "evidence";

/// The number of an event that no case has.
const NO_EVENT: u64 = 1 << 32;

/// The event with the result of each call that completed, by the position of the call from 1.
#[derive(Debug, Default)]
pub struct Evidence(BTreeMap<u64, u64>);

impl Evidence {
    /// Takes an event, if it has the result of the call at a position.
    pub fn record(&mut self, position: usize, entry: &Entry) {
        if let Event::ToolCompleted { .. } | Event::ResultOffloaded { .. } | Event::UserReplied { .. } = entry.event {
            self.0.insert(position as u64, entry.seq);
        }
    }

    /// Returns the arguments of a call as the model writes them, with the event in place of the position.
    pub fn arguments_of(&self, call: &TestedCall) -> String {
        let mut arguments = call.arguments.clone();
        if let Some((_, event)) = self.named_by(call) {
            arguments.insert(EVIDENCE.to_owned(), json!(event));
        }
        Value::Object(arguments).to_string()
    }

    /// Returns a refusal of a call by the engine, with the position in place of the event.
    pub fn refusal_of(&self, call: &TestedCall, text: &str) -> String {
        match self.named_by(call) {
            Some((position, event)) => text.replace(&format!("event {event} "), &format!("call {position} ")),
            None => text.to_owned(),
        }
    }

    /// Returns the position that a call of `subgoal_done` names, and the event with the result of the call there. `None` for a call of
    /// another tool, or if the evidence is not a number.
    fn named_by(&self, call: &TestedCall) -> Option<(u64, u64)> {
        let position = call.arguments.get(EVIDENCE).filter(|_| call.tool == SUBGOAL_DONE)?.as_u64()?;
        Some((position, self.0.get(&position).copied().unwrap_or(NO_EVENT)))
    }
}
