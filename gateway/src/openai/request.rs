//! The requests of chat clients.

use crate::problem::Problem;
use axum::http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

/// The fields that are accepted and have no effect. The Skill sets the model and its parameters, and no client can notice the difference.
const WITHOUT_EFFECT: [&str; 17] = [
    "frequency_penalty",
    "max_completion_tokens",
    "max_tokens",
    "metadata",
    "parallel_tool_calls",
    "prediction",
    "presence_penalty",
    "prompt_cache_key",
    "reasoning_effort",
    "safety_identifier",
    "seed",
    "service_tier",
    "store",
    "temperature",
    "top_p",
    "user",
    "verbosity",
];

/// A request for the answer to the last message of a chat.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct CompletionRequest {
    /// The name of a Skill.
    #[schemars(length(max = 50), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    pub(super) model: String,
    /// The chat. The last message is the user's.
    #[schemars(length(min = 1))]
    pub(super) messages: Vec<Message>,
    /// Whether the answer is a stream of server-sent events.
    pub(super) stream: Option<bool>,
    /// The options of a stream.
    pub(super) stream_options: Option<StreamOptions>,
    /// Other fields. Some are accepted and have no effect, such as `temperature`. All others are refused, unless they are null or ask for
    /// nothing, such as `"n": 1`.
    #[serde(flatten)]
    others: Map<String, Value>,
}

/// The options of a stream.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct StreamOptions {
    /// Whether a last chunk has the usage.
    pub(super) include_usage: Option<bool>,
}

/// A message of a chat.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Message {
    /// The author.
    pub(super) role: Role,
    /// The text.
    pub(super) content: Option<Content>,
    /// Calls of tools of the client, which are refused.
    tool_calls: Option<Vec<Value>>,
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Role {
    /// The application. Its messages belong to the goal.
    System,
    /// The application.
    Developer,
    /// The user.
    User,
    /// The Skill.
    Assistant,
}

/// The content of a message.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Content {
    /// A text.
    Text(String),
    /// A list of parts.
    Parts(Vec<Part>),
}

/// A part of a message. Only parts with text are accepted.
#[derive(Debug, Deserialize, JsonSchema)]
pub(crate) struct Part {
    /// The kind: `text`.
    #[serde(rename = "type")]
    kind: String,
    /// The text.
    text: Option<String>,
}

impl CompletionRequest {
    /// Checks that no field is ignored whose absence would mislead.
    ///
    /// # Errors
    /// The first such field.
    pub(super) fn check(&self) -> Result<(), Problem> {
        match self.others.iter().find(|(name, value)| !is_accepted(name, value)) {
            None => Ok(()),
            Some((name, _)) => {
                Err(refused(name, "is not supported. Leave it out; the Skill sets tools and parameters"))
            }
        }
    }
}

fn is_accepted(name: &str, value: &Value) -> bool {
    let asks_for_nothing = match name {
        "n" => *value == json!(1),
        "tools" | "functions" | "stop" => *value == json!([]),
        "tool_choice" | "function_call" => *value == json!("none"),
        "logprobs" => *value == json!(false),
        "response_format" => *value == json!({"type": "text"}),
        "modalities" => *value == json!(["text"]),
        _ => WITHOUT_EFFECT.contains(&name),
    };
    asks_for_nothing || value.is_null()
}

impl Message {
    /// Returns the text of a message. `place` is its path in the request.
    ///
    /// # Errors
    /// If it contains anything else.
    pub(super) fn text(&self, place: &str) -> Result<String, Problem> {
        if self.tool_calls.as_ref().is_some_and(|calls| !calls.is_empty()) {
            return Err(refused(&format!("{place}.tool_calls"), "is not supported: a Skill calls its own tools"));
        }
        match &self.content {
            None => Ok(String::new()),
            Some(Content::Text(text)) => Ok(text.clone()),
            Some(Content::Parts(parts)) => {
                let texts = parts.iter().enumerate().map(|(nth, part)| match (part.kind.as_str(), &part.text) {
                    ("text", Some(text)) => Ok(text.as_str()),
                    _ => Err(refused(
                        &format!("{place}.content[{nth}]"),
                        "is no text: only parts with text are supported",
                    )),
                });
                Ok(texts.collect::<Result<Vec<_>, _>>()?.join("\n"))
            }
        }
    }
}

/// Returns the problem of a field.
pub(super) fn refused(field: &str, fault: &str) -> Problem {
    Problem::new(StatusCode::BAD_REQUEST, format!("{field} {fault}."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn request(fields: &Value) -> CompletionRequest {
        let mut request = json!({"model": "greeter", "messages": []});
        request.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(request).unwrap()
    }

    #[rstest]
    #[case::parameters(json!({"temperature": 0.2, "max_tokens": 10, "user": "u", "seed": 1, "store": true}), None)]
    #[case::nothing(json!({"n": 1, "tools": [], "tool_choice": "none", "stop": null, "audio": null}), None)]
    #[case::text(json!({"response_format": {"type": "text"}, "modalities": ["text"], "logprobs": false}), None)]
    #[case::tools(json!({"tools": [{"type": "function"}]}), Some("tools is not supported"))]
    #[case::several(json!({"n": 2}), Some("n is not supported"))]
    #[case::format(json!({"response_format": {"type": "json_object"}}), Some("response_format is not supported"))]
    #[case::unknown(json!({"temprature": 1}), Some("temprature is not supported"))]
    fn a_field_is_refused_if_its_absence_would_mislead(#[case] fields: Value, #[case] refusal: Option<&str>) {
        let checked = request(&fields).check();
        assert_eq!(checked.is_err(), refusal.is_some(), "{checked:?}");
        if let Some(refusal) = refusal {
            assert!(checked.unwrap_err().detail().starts_with(refusal));
        }
    }

    #[rstest]
    #[case::text(json!({"role": "user", "content": "hi"}), Ok("hi"))]
    #[case::parts(json!({"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}), Ok("a\nb"))]
    #[case::nothing(json!({"role": "assistant", "content": null, "tool_calls": [], "refusal": null}), Ok(""))]
    #[case::image(
        json!({"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}),
        Err("messages[0].content[0] is no text")
    )]
    #[case::call(json!({"role": "assistant", "tool_calls": [{}]}), Err("messages[0].tool_calls"))]
    fn a_message_is_text(#[case] message: Value, #[case] expected: Result<&str, &str>) {
        let message: Message = serde_json::from_value(message).unwrap();
        match (message.text("messages[0]"), expected) {
            (Ok(text), Ok(expected)) => assert_eq!(text, expected),
            (Err(problem), Err(expected)) => assert!(problem.detail().starts_with(expected), "{problem:?}"),
            (text, expected) => panic!("{text:?} is not {expected:?}"),
        }
    }
}
