//! The answers and failures of models.

use bloomery_crds::v1alpha1::ModelProvider;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The answer of a model.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The provider's own message, complete, so that all its fields stay in the history.
    pub message: Value,
    /// The provider whose format the message has.
    #[serde(default, skip_serializing_if = "is_openai")]
    pub provider: ModelProvider,
    /// The name of the Model that answered: the Model of the stage, or one of its fallbacks. Logs of earlier versions
    /// do not have it: each stage had one Model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The text of the answer, without calls.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The requested tool calls, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<RequestedCall>,
    /// The tokens of the request, as the provider counted them; none if it did not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// The tokens of the request that the provider read from its cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// The tokens of the answer, as the provider counted them; none if it did not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// Whether the answer was cut off at a length limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

// serde passes the value by reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_openai(provider: &ModelProvider) -> bool {
    *provider == ModelProvider::Openai
}

/// A tool call as the model requested it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestedCall {
    /// The provider's id of the call. The result in the history has the same id. It is not unique within a Job.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as the model wrote them, with secret values redacted.
    pub arguments: String,
    /// The names of the secrets whose values the arguments contained. The gate denies such a call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
}

/// The reason why there is no usable answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ModelFailure {
    /// The provider's response cannot be read. The request may be repeated.
    Unreadable,
    /// The provider did not answer, or refused, until the worker gave up.
    Unavailable,
    /// The answer can be read, but does not have the form that the stage asked for. The stage asks once more.
    #[serde(rename = "misread")]
    InvalidAnswer,
    /// The conversation is longer than the model accepts. The request may be repeated when the conversation is shorter.
    TooLong,
}

/// The origin of a tool selection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "camelCase")]
#[strum(serialize_all = "lowercase")]
pub enum SelectedBy {
    /// A model selected the tools.
    Model,
    /// The selection of a recent Job of the same Skill was reused.
    Memory,
    /// The first tools of the catalogue: no answer of a model was usable, or the prompt had no room for the question.
    Order,
}
