//! The script: the answers of the model, by conversation and turn.

mod fault;
mod source;

use bloomery_crds::v1alpha1::Stage;
use serde::Deserialize;
use serde_json::Value;

pub use self::fault::{Cut, Fault, FaultKind, RetryAfter, Times};
pub(super) use self::source::Source;
use super::place::{Place, STAGES};

/// Error of a script that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is not valid YAML, or has fields or values that a script does not have.
    #[error(transparent)]
    Yaml(#[from] serde_yaml::Error),
    /// A turn of the script is invalid.
    #[error("conversation `{conversation}`, {place}: {error}")]
    Turn {
        /// The name of the conversation.
        conversation: String,
        /// The place of the turn in the conversation.
        place: String,
        /// The error of the turn.
        error: TurnError,
    },
}

/// The reason why a turn is invalid.
#[derive(Debug, thiserror::Error)]
pub enum TurnError {
    /// It has no answer.
    #[error("it needs `say`, `json`, `calls`, or a fault that is served `times: always`")]
    NoAnswer,
    /// It has two texts.
    #[error("`say` and `json` exclude each other")]
    TwoTexts,
    /// The call of this tool has its arguments twice.
    #[error("call of `{0}`: `arguments` and `rawArguments` exclude each other")]
    TwoArguments(String),
}

/// A whole script, as written in YAML.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Script {
    /// The names of the models. Requests for other names are refused. If it is empty, every name is accepted.
    #[serde(default)]
    pub models: Vec<String>,
    /// The conversations. The first one that matches a request answers it.
    pub conversations: Vec<Conversation>,
}

/// A conversation and the requests that belong to it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Conversation {
    /// The name of the conversation in violations and logs. It should be unique.
    pub name: String,
    /// The conditions for requests that belong to the conversation. Without conditions, every request does.
    #[serde(default, rename = "match")]
    pub matches: Match,
    /// The answers of the main loop: turn N answers a request with N assistant messages.
    #[serde(default)]
    pub turns: Vec<Turn>,
    /// The answers to intent detection, in the order of its different requests.
    #[serde(default)]
    pub intent: Vec<Turn>,
    /// The answers to the selection of tools, in the order of its different requests.
    #[serde(default)]
    pub selection: Vec<Turn>,
    /// The answers to the finalization gate, in the order of its different requests.
    #[serde(default)]
    pub finalization: Vec<Turn>,
    /// The answers to the polisher, in the order of its different requests.
    #[serde(default)]
    pub polish: Vec<Turn>,
    /// The dotted paths of request fields that the server does not support (`response_format`, `output_config.format`).
    /// It refuses requests with them, as a provider without these fields would, and records no violation.
    #[serde(default)]
    pub unknown_fields: Vec<String>,
}

/// The conditions for a request to belong to a conversation. An absent field matches every request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Match {
    /// A part of the first user message, which is the Job's goal.
    pub goal: Option<String>,
    /// The name of the model, in full.
    pub model: Option<String>,
    /// A part of the system message.
    pub system: Option<String>,
}

/// An answer of the model, and the faults and expectations before it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Turn {
    /// The faults that are served before the answer, in this order.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// The expectations on the request. A request that fails one is refused and recorded as a violation.
    #[serde(default)]
    pub expect: Expect,
    /// The text of the answer.
    pub say: Option<String>,
    /// The text of the answer as JSON.
    pub json: Option<Value>,
    /// The tool calls of the answer.
    #[serde(default)]
    pub calls: Vec<Call>,
    /// The thought before the answer. Anthropic's protocol shows it, signed; `OpenAI`'s only counts it.
    pub thinking: Option<String>,
    /// The data of a redacted thought. Only Anthropic's protocol has redacted thoughts.
    pub redacted_thinking: Option<String>,
    /// The reason why the answer ends early, if it does.
    pub stop: Option<Stop>,
    /// If true, the answer is written in a form that its protocol permits, but servers seldom use: with unknown fields
    /// and events, with comments, and with CRLF line endings.
    #[serde(default)]
    pub unusual: bool,
    /// The tokens that the answer reports. By default, a quarter of the length in bytes.
    pub usage: Option<Usage>,
}

/// Expectations on a request.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expect {
    /// A part of the last tool result.
    pub last_tool_result_contains: Option<String>,
    /// A part of the last user message, in which the engine asks for another form of the answer.
    pub last_user_message_contains: Option<String>,
    /// A part of the system message.
    pub system_contains: Option<String>,
    /// Texts that no message may contain, such as the value of a secret.
    #[serde(default)]
    pub no_message_contains: Vec<String>,
    /// Tools that must be offered. Others may be offered too.
    #[serde(default)]
    pub tools_offered: Vec<String>,
    /// Tools that must not be offered.
    #[serde(default)]
    pub tools_not_offered: Vec<String>,
    /// If set, the request must (true) or must not (false) ask for JSON that follows a schema.
    pub structured: Option<bool>,
    /// If set, the request must (true) or must not (false) ask for a stream.
    pub streaming: Option<bool>,
}

/// The reason why an answer ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stop {
    /// It reached the limit of output tokens.
    Length,
    /// The model refuses to answer. The text is its refusal.
    Refusal,
    /// The context window is full.
    ContextWindow,
}

/// One tool call of an answer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Call {
    /// The call's id. By default `call_<turn>_<index>`, which is the same for each request of the turn.
    pub id: Option<String>,
    /// The tool's name.
    pub name: String,
    /// The arguments, sent as JSON text. If neither they nor `rawArguments` are given, `{}`.
    pub arguments: Option<Value>,
    /// The text of the arguments, for models that write invalid JSON or duplicate keys. In Anthropic's protocol,
    /// arguments are an object; without streaming, invalid JSON is sent as a string instead.
    pub raw_arguments: Option<String>,
}

/// The tokens of one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Usage {
    /// All tokens of the request.
    pub prompt_tokens: u64,
    /// All tokens of the answer.
    pub completion_tokens: u64,
    /// The answer's tokens that are thoughts.
    #[serde(default)]
    pub thinking_tokens: u64,
    /// The request's tokens that were read from a cache.
    #[serde(default)]
    pub cached_tokens: u64,
    /// The request's tokens that were written to a cache.
    #[serde(default)]
    pub cache_write_tokens: u64,
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// The text is not a valid script in YAML. The error names the place.
    pub fn from_yaml(text: &str) -> Result<Self, Error> {
        let script: Self = serde_yaml::from_str(text)?;
        script.check()?;
        Ok(script)
    }

    fn check(&self) -> Result<(), Error> {
        for conversation in &self.conversations {
            for stage in STAGES {
                for (turn, answer) in conversation.answers(stage).iter().enumerate() {
                    answer.check().map_err(|error| Error::Turn {
                        conversation: conversation.name.clone(),
                        place: Place { stage, turn }.to_string(),
                        error,
                    })?;
                }
            }
        }
        Ok(())
    }
}

impl Conversation {
    /// Returns the answers of a stage.
    pub(super) fn answers(&self, stage: Stage) -> &[Turn] {
        match stage {
            Stage::Intent => &self.intent,
            Stage::Selection => &self.selection,
            Stage::Plan => &self.turns,
            Stage::Finalization => &self.finalization,
            Stage::Polish => &self.polish,
        }
    }
}

impl Turn {
    fn check(&self) -> Result<(), TurnError> {
        let empty = self.say.is_none() && self.json.is_none() && self.calls.is_empty();
        if empty && !self.faults.iter().any(Fault::is_endless) {
            return Err(TurnError::NoAnswer);
        }
        if self.say.is_some() && self.json.is_some() {
            return Err(TurnError::TwoTexts);
        }
        match self.calls.iter().find(|call| call.arguments.is_some() && call.raw_arguments.is_some()) {
            Some(call) => Err(TurnError::TwoArguments(call.name.clone())),
            None => Ok(()),
        }
    }

    /// Returns the text of the answer.
    pub(super) fn text(&self) -> Option<String> {
        self.say.clone().or_else(|| self.json.as_ref().map(Value::to_string))
    }
}

impl Call {
    /// Returns the text of the arguments as a model would send it.
    pub(super) fn arguments_text(&self) -> String {
        match (&self.raw_arguments, &self.arguments) {
            (Some(raw), _) => raw.clone(),
            (None, Some(arguments)) => arguments.to_string(),
            (None, None) => "{}".to_owned(),
        }
    }
}
