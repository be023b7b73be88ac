//! The script: what the model says, in which conversation, at which turn.

mod fault;
mod source;

use bloomery_crds::v1alpha1::Stage;
use serde::Deserialize;
use serde_json::Value;

pub use self::fault::{Cut, Fault, FaultKind, RetryAfter, Times};
pub(super) use self::source::Source;
use super::place::{Place, STAGES};

/// A whole script, as written in YAML.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Script {
    /// The models on offer; any other name is refused as OpenAI does. Empty: every name is taken.
    #[serde(default)]
    pub models: Vec<String>,
    /// The conversations, the first that matches a request wins.
    pub conversations: Vec<Conversation>,
}

/// One conversation and the requests that belong to it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Conversation {
    /// What it is called in violations and logs; it should be unique.
    pub name: String,
    /// Which requests belong to it. Absent: all.
    #[serde(default, rename = "match")]
    pub matches: Match,
    /// The answers of the main loop: turn N answers a request that holds N assistant messages.
    #[serde(default)]
    pub turns: Vec<Turn>,
    /// What intent detection is answered, in the order of its different requests.
    #[serde(default)]
    pub intent: Vec<Turn>,
    /// What the selection of tools is answered, in the order of its different requests.
    #[serde(default)]
    pub selection: Vec<Turn>,
    /// What the finalization gate is answered, in the order of its different requests.
    #[serde(default)]
    pub finalization: Vec<Turn>,
    /// What the reply polisher is answered, in the order of its different requests.
    #[serde(default)]
    pub polish: Vec<Turn>,
    /// Fields of a request that the server does not know, by their paths with dots (`response_format`,
    /// `output_config.format`): it refuses them as its provider would, which is no violation.
    #[serde(default)]
    pub unknown_fields: Vec<String>,
}

/// What a request must hold to belong to a conversation; what is left out matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Match {
    /// A part of the first user message: the Job's goal.
    pub goal: Option<String>,
    /// The name of the model, in full.
    pub model: Option<String>,
    /// A part of the system message.
    pub system: Option<String>,
}

/// One answer of the model, and what must be so before it is given.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Turn {
    /// Served first, in their order.
    #[serde(default)]
    pub faults: Vec<Fault>,
    /// What the request must hold; if it does not, it is refused and recorded as a violation.
    #[serde(default)]
    pub expect: Expect,
    /// The text of the answer.
    pub say: Option<String>,
    /// The text of the answer, as the JSON that it is.
    pub json: Option<Value>,
    /// The tool calls of the answer.
    #[serde(default)]
    pub calls: Vec<Call>,
    /// What the model thought before it. Anthropic's protocol shows it, signed; `OpenAI`'s only counts it.
    pub thinking: Option<String>,
    /// What it thought and nobody may see, as the text that stands for it. Only Anthropic's protocol has it.
    pub redacted_thinking: Option<String>,
    /// Why the answer ends, where that is not because it is done.
    pub stop: Option<Stop>,
    /// Whether the answer is written as protocols permit and servers seldom do: with fields, events and comments that
    /// no client knows, and with other line ends.
    #[serde(default)]
    pub unusual: bool,
    /// The tokens that the answer claims; without it, a quarter of the length in bytes.
    pub usage: Option<Usage>,
}

/// What a request must hold.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expect {
    /// A part of the last tool result.
    pub last_tool_result_contains: Option<String>,
    /// A part of the last user message: how the engine asks for another form of the answer.
    pub last_user_message_contains: Option<String>,
    /// A part of the system message.
    pub system_contains: Option<String>,
    /// Texts that must stand in no message, such as the value of a secret.
    #[serde(default)]
    pub no_message_contains: Vec<String>,
    /// Tools that must be offered; others may be.
    #[serde(default)]
    pub tools_offered: Vec<String>,
    /// Tools that must not be offered.
    #[serde(default)]
    pub tools_not_offered: Vec<String>,
    /// Whether the answer must be asked for as JSON of a schema, or must not.
    pub structured: Option<bool>,
    /// Whether the answer must be asked for as a stream, or must not.
    pub streaming: Option<bool>,
}

/// Why an answer ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Stop {
    /// It reached the most tokens that an answer may have.
    Length,
    /// The model will not: what it says is its refusal.
    Refusal,
    /// The model's window is full.
    ContextWindow,
}

/// One tool call of an answer.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Call {
    /// The call's id; without it `call_<turn>_<index>`, the same whenever the turn is asked for.
    pub id: Option<String>,
    /// The tool's name.
    pub name: String,
    /// The arguments, sent as JSON text. Absent, like `rawArguments`: `{}`.
    pub arguments: Option<Value>,
    /// The arguments' text as it stands, for models that write what is no JSON, or one key twice. Anthropic's
    /// protocol has an object there: in an answer of one piece, what is no JSON is sent as a string.
    pub raw_arguments: Option<String>,
}

/// The tokens of one answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Usage {
    /// Tokens of the request, all of them.
    pub prompt_tokens: u64,
    /// Tokens of the answer, all of them.
    pub completion_tokens: u64,
    /// How many of the answer's were thought.
    #[serde(default)]
    pub thinking_tokens: u64,
    /// How many of the request's were read from a cache.
    #[serde(default)]
    pub cached_tokens: u64,
    /// How many of the request's were put into a cache.
    #[serde(default)]
    pub cache_write_tokens: u64,
}

impl Script {
    /// Reads a script.
    ///
    /// # Errors
    /// The text is no YAML or no script; the sentence names the place.
    pub fn from_yaml(text: &str) -> Result<Self, String> {
        let script: Self = serde_yaml::from_str(text).map_err(|error| error.to_string())?;
        script.check()?;
        Ok(script)
    }

    fn check(&self) -> Result<(), String> {
        for conversation in &self.conversations {
            for stage in STAGES {
                for (turn, answer) in conversation.answers(stage).iter().enumerate() {
                    let place = Place { stage, turn };
                    answer.check().map_err(|why| format!("conversation `{}`, {place}: {why}", conversation.name))?;
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
    fn check(&self) -> Result<(), String> {
        let empty = self.say.is_none() && self.json.is_none() && self.calls.is_empty();
        if empty && !self.faults.iter().any(Fault::is_endless) {
            return Err("it needs `say`, `json`, `calls`, or a fault that is served `times: always`".to_owned());
        }
        if self.say.is_some() && self.json.is_some() {
            return Err("`say` and `json` exclude each other".to_owned());
        }
        match self.calls.iter().find(|call| call.arguments.is_some() && call.raw_arguments.is_some()) {
            Some(call) => Err(format!("call of `{}`: `arguments` and `rawArguments` exclude each other", call.name)),
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
