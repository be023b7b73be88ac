//! The history that the model of the main loop reads. Turns are only added, so that providers can cache the prefix; only
//! offloading changes a turn.

use crate::budget::Budget;
use crate::event::{Answer, CallId};
use bloomery_crds::v1alpha1::ModelProvider;
use std::collections::BTreeMap;

/// One turn of the history. A model client converts it to the format of its provider.
#[derive(Debug, Clone, PartialEq)]
pub enum Turn {
    /// A message of the user, or of the engine in the role of the user.
    User(String),
    /// An answer of a model.
    Assistant(ModelMessage),
    /// The result of a call. Each call has exactly one.
    ToolResult {
        /// The provider's id of the call.
        id: String,
        /// The result, as the model reads it.
        text: String,
    },
}

/// An answer of a model, verbatim. A client of another Model converts the text and the calls to its own format.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelMessage {
    /// The provider's message, as JSON text: a parsed value would take several times the memory.
    pub message: String,
    /// The provider whose format the message has.
    pub provider: ModelProvider,
    /// The name of the Model that gave the answer. `None` in logs of earlier versions: the Model of the main loop.
    pub model: Option<String>,
}

impl From<&Answer> for ModelMessage {
    fn from(answer: &Answer) -> Self {
        // The message is kept as long as the conversation, so it must not keep spare capacity.
        let mut message = answer.message.to_string();
        message.shrink_to_fit();
        Self { message, provider: answer.provider, model: answer.model.clone() }
    }
}

/// The system prompt, the turns, and the messages of people that will become turns.
#[derive(Debug, Default)]
pub struct History {
    system: Option<String>,
    turns: Vec<Turn>,
    /// The index of the turn with each call's result, until the result is offloaded.
    results: BTreeMap<CallId, usize>,
    /// The number of the model's answers when a result was last offloaded; 0 before the first.
    answers_at_offload: u32,
    /// The number of results that were offloaded after they joined the history.
    offloaded: u32,
    /// Messages of people that wait until the calls of the last answer are settled.
    waiting_messages: Vec<String>,
    /// The `seq` of the event with which the latest messages of people joined the turns.
    messages_joined_at: u64,
}

impl History {
    /// Opens the history with the system prompt and the goal.
    pub(crate) fn open(&mut self, system: &str, goal: &str, budget: &mut Budget) {
        budget.add_to_prompt(system.len());
        self.system = Some(system.to_owned());
        self.add(Turn::User(goal.to_owned()), budget);
    }

    /// Adds a turn.
    pub(crate) fn add(&mut self, turn: Turn, budget: &mut Budget) {
        budget.add_to_prompt(match &turn {
            Turn::User(text) | Turn::ToolResult { text, .. } => text.len(),
            Turn::Assistant(answer) => answer.message.len(),
        });
        self.turns.push(turn);
    }

    /// Adds the result of a call that completed. The result can be offloaded later.
    pub(crate) fn add_result(&mut self, call: CallId, turn: Turn, budget: &mut Budget) {
        self.results.insert(call, self.turns.len());
        self.add(turn, budget);
    }

    /// Replaces a result by an excerpt. Returns whether the history still had the whole result.
    pub(crate) fn offload(&mut self, call: &CallId, excerpt: &str, budget: &mut Budget) -> bool {
        let Some(turn) = self.results.remove(call) else { return false };
        self.answers_at_offload = budget.answers();
        self.offloaded += 1;
        if let Some(Turn::ToolResult { text, .. }) = self.turns.get_mut(turn) {
            budget.remove_from_prompt(text.len().saturating_sub(excerpt.len()));
            // Allocate the excerpt anew: shrinking the text in place would fragment the memory.
            drop(std::mem::replace(text, excerpt.to_owned()));
        }
        true
    }

    /// Keeps a message of a person until [`History::join_messages`].
    pub(crate) fn receive(&mut self, text: &str) {
        self.waiting_messages.push(text.to_owned());
    }

    /// Adds the waiting messages as turns. `seq` is the event that adds them. Does nothing before the history is open.
    pub(crate) fn join_messages(&mut self, seq: u64, budget: &mut Budget) {
        if self.system.is_none() || self.waiting_messages.is_empty() {
            return;
        }
        for text in std::mem::take(&mut self.waiting_messages) {
            self.add(Turn::User(text), budget);
        }
        self.messages_joined_at = seq;
    }

    /// Returns whether the event `seq` added messages of people to the turns.
    pub(crate) fn messages_joined_with(&self, seq: u64) -> bool {
        self.messages_joined_at == seq
    }

    /// The system prompt, once the conversation is open.
    pub fn system(&self) -> Option<&str> {
        self.system.as_deref()
    }

    /// The turns so far.
    pub fn turns(&self) -> &[Turn] {
        &self.turns
    }

    /// The index of the turn with each call's result, without offloaded results.
    pub(crate) fn results(&self) -> &BTreeMap<CallId, usize> {
        &self.results
    }

    /// The number of the model's answers when a result was last offloaded; 0 before the first.
    pub(crate) fn answers_at_offload(&self) -> u32 {
        self.answers_at_offload
    }

    /// The number of offloads in the history. It is the version of the turns: offloading is the only change of an earlier turn.
    pub(crate) fn offloaded(&self) -> u32 {
        self.offloaded
    }
}
