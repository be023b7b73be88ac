//! Jobs: their parameters, and their projections.

use bloomery_crds::outcome::Phase;
use bloomery_crds::report::Projection;
use bloomery_crds::v1alpha1::Limits;
use bloomery_engine::Conversation;
use bloomery_engine::history::{ModelMessage, Turn};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The parameters of a new Job.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct NewJob {
    /// The goal.
    pub goal: String,
    /// The name of the Skill. Without one, the default Skill.
    pub skill: Option<String>,
    /// The values of the Skill's resources, by name: a path, a URL, or the name of a binding, as the runtime allows.
    pub resources: BTreeMap<String, String>,
    /// Limits that are lower than those of the Skill.
    pub limits: Option<Limits>,
    /// The key of the Job. A second start with this key and the same parameters returns the same Job, also if its Skill has changed or is gone
    /// since. One with other parameters is a conflict. Without a key, each start is a new Job.
    pub key: Option<String>,
    /// The key of an ended Job of the Skill that this one continues.
    pub continues: Option<String>,
}

impl NewJob {
    /// Returns the parameters of a Job of the default Skill.
    pub fn new(goal: impl Into<String>) -> Self {
        Self { goal: goal.into(), ..Self::default() }
    }
}

/// A Job in a list.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JobSummary {
    /// The key.
    pub job: String,
    /// The name of the Skill.
    pub skill: String,
    /// The goal.
    pub goal: String,
    /// The phase.
    pub phase: Phase,
    /// The time of the creation, in RFC 3339; none if the runtime does not know it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<String>,
}

/// The state of a Job.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct JobStatus {
    /// The key.
    pub job: String,
    /// The name of the Skill.
    pub skill: String,
    /// The goal.
    pub goal: String,
    /// The status, as on a cluster.
    pub status: Projection,
    /// The reason and the message of the condition `Ready`, while it is not true. Only a Job on a cluster that has not ended has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
}

/// The conversation as the model of the main loop reads it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct ModelContext {
    /// The system prompt, once the conversation is open.
    pub system: Option<String>,
    /// The turns.
    pub turns: Vec<ContextTurn>,
}

/// A turn of a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase", tag = "role")]
pub enum ContextTurn {
    /// A message of the user, or of the engine in the role of the user.
    User {
        /// The message.
        text: String,
    },
    /// An answer of the model.
    Assistant {
        /// The message of the provider, as JSON text.
        message: String,
    },
    /// The result of a call.
    Tool {
        /// The provider's id of the call.
        id: String,
        /// The result, as the model reads it.
        text: String,
    },
}

impl ModelContext {
    /// Returns the context of the next request in the main loop of a conversation.
    pub fn new(conversation: &Conversation) -> Self {
        let system = conversation.system().map(str::to_owned);
        Self { system, turns: conversation.turns().iter().map(ContextTurn::from).collect() }
    }
}

impl From<&Turn> for ContextTurn {
    fn from(turn: &Turn) -> Self {
        match turn {
            Turn::User(text) => Self::User { text: text.clone() },
            Turn::Assistant(ModelMessage { message, provider: _, model: _ }) => {
                Self::Assistant { message: message.clone() }
            }
            Turn::ToolResult { id, text } => Self::Tool { id: id.clone(), text: text.clone() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_crds::v1alpha1::ModelProvider;
    use serde_json::json;

    #[test]
    fn each_turn_has_its_role() {
        let answer = ModelMessage { message: "{}".into(), provider: ModelProvider::Openai, model: None };
        let turns =
            [Turn::User("hi".into()), Turn::Assistant(answer), Turn::ToolResult { id: "c".into(), text: "ok".into() }];
        let shown = serde_json::to_value(turns.iter().map(ContextTurn::from).collect::<Vec<_>>()).unwrap();
        let expected = json!([
            {"role": "user", "text": "hi"},
            {"role": "assistant", "message": "{}"},
            {"role": "tool", "id": "c", "text": "ok"},
        ]);
        assert_eq!(shown, expected);
    }
}
