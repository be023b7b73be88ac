//! What a model answered, or why it did not.

use bloomery_crds::v1alpha1::ModelProvider;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a model answered.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer {
    /// The provider's own message, kept whole so that its fields survive in the history.
    pub message: Value,
    /// Whose form the message has.
    #[serde(default, skip_serializing_if = "is_openai")]
    pub provider: ModelProvider,
    /// The name of the Model that answered: that of the stage, or one of its fallbacks. A worker of an earlier version
    /// did not write it; there was one Model a stage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// What it says, without calls.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// The tools that it asks for, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<AskedCall>,
    /// Tokens sent, as the provider counts them; absent where it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<u64>,
    /// Of the tokens sent, those that the provider had in its cache.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cached_tokens: Option<u64>,
    /// Tokens answered, as the provider counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<u64>,
    /// The answer was cut off at the provider's or the model's length limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub cut: bool,
}

// By reference, as serde asks it.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_openai(provider: &ModelProvider) -> bool {
    *provider == ModelProvider::Openai
}

/// A tool call as the model asked for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskedCall {
    /// The provider's id, which its history needs; not unique within a Job.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// The arguments as the model wrote them, without secret values.
    pub arguments: String,
    /// The secrets whose values stood in the arguments: such a call is denied.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
}

/// Why there is no usable answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ModelFailure {
    /// The provider answered something that cannot be read; it may be asked again.
    Unreadable,
    /// The provider did not answer, or refused, for as long as the worker was patient.
    Unavailable,
    /// The answer of a stage can be read, and is not what was asked for; the stage is asked once more.
    Misread,
    /// The conversation is longer than the model takes; it may be asked again once it is shorter.
    TooLong,
}
