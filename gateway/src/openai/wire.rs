//! The responses, in the form of the API of OpenAI.

use super::answer::Answer;
use super::error;
use crate::events::HEARTBEAT;
use crate::problem::Problem;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use bloomery_crds::v1alpha1::Usage;
use futures::{StreamExt, stream};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use std::future::ready;
use std::time::{SystemTime, UNIX_EPOCH};

/// The models.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ModelList {
    /// `list`.
    #[schemars(with = "String")]
    object: &'static str,
    /// The models.
    data: Vec<Model>,
}

/// A Skill that Jobs can use.
#[derive(Debug, Serialize, JsonSchema)]
struct Model {
    /// The name of the Skill.
    id: String,
    /// `model`.
    #[schemars(with = "String")]
    object: &'static str,
    /// Always 0: a Skill has no time at which it was created.
    created: u64,
    /// `bloomery`.
    #[schemars(with = "String")]
    owned_by: &'static str,
}

impl ModelList {
    /// Creates the list of some Skills.
    pub(super) fn new(names: impl Iterator<Item = String>) -> Self {
        let data = names.map(|id| Model { id, object: "model", created: 0, owned_by: "bloomery" }).collect();
        Self { object: "list", data }
    }
}

/// The fields that each chunk of an answer has.
#[derive(Debug)]
pub(super) struct Head {
    id: String,
    created: u64,
    model: String,
}

impl Head {
    /// Creates the fields of the answer of a Job.
    pub(super) fn new(job: &str, model: String) -> Self {
        let created = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        Self { id: format!("chatcmpl-{job}"), created, model }
    }
}

/// An answer.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Completion {
    /// The id, which ends with the key of the Job.
    id: String,
    /// `chat.completion`.
    #[schemars(with = "String")]
    object: &'static str,
    /// The time of the response, in seconds since 1970.
    created: u64,
    /// The name of the Skill.
    model: String,
    /// The only choice.
    choices: Vec<Choice>,
    /// The consumed tokens.
    usage: ChatUsage,
}

/// An answer of a Skill.
#[derive(Debug, Serialize, JsonSchema)]
struct Choice {
    /// Always 0.
    index: u32,
    /// The message.
    message: AssistantMessage,
    /// Always null.
    logprobs: Option<Value>,
    /// `stop`.
    #[schemars(with = "String")]
    finish_reason: &'static str,
}

/// A message of a Skill.
#[derive(Debug, Serialize, JsonSchema)]
struct AssistantMessage {
    /// `assistant`.
    #[schemars(with = "String")]
    role: &'static str,
    /// The text.
    content: String,
    /// Always null.
    refusal: Option<Value>,
}

/// The tokens that a Job consumed since the message of the user.
#[derive(Debug, Serialize, JsonSchema)]
struct ChatUsage {
    /// Tokens sent to models.
    prompt_tokens: u64,
    /// Tokens in their answers.
    completion_tokens: u64,
    /// The sum.
    total_tokens: u64,
    /// The cached part.
    prompt_tokens_details: CachedTokens,
}

/// The part of tokens that a provider read from its cache.
#[derive(Debug, Serialize, JsonSchema)]
struct CachedTokens {
    /// The number of tokens.
    cached_tokens: u64,
}

impl From<&Usage> for ChatUsage {
    fn from(usage: &Usage) -> Self {
        let Usage { input_tokens, cached_input_tokens, output_tokens, .. } = usage;
        Self {
            prompt_tokens: *input_tokens,
            completion_tokens: *output_tokens,
            total_tokens: input_tokens.saturating_add(*output_tokens),
            prompt_tokens_details: CachedTokens { cached_tokens: *cached_input_tokens },
        }
    }
}

impl Completion {
    /// Creates the response with an answer.
    pub(super) fn new(Head { id, created, model }: Head, Answer { text, usage }: Answer) -> Self {
        let message = AssistantMessage { role: "assistant", content: text, refusal: None };
        let choices = vec![Choice { index: 0, message, logprobs: None, finish_reason: "stop" }];
        Self {
            id,
            object: "chat.completion",
            created,
            model,
            choices,
            usage: ChatUsage::from(&usage.unwrap_or_default()),
        }
    }
}

/// Returns a stream with an answer. Comments keep the connection alive until there is one.
pub(super) fn streamed<F>(head: Head, answer: F) -> Response
where
    F: Future<Output = Result<Answer, Problem>> + Send + 'static,
{
    let begin = chunk(&head, &choice(&json!({"role": "assistant", "content": ""}), None), None);
    let rest = stream::once(answer).flat_map(move |answer| stream::iter(rest(&head, answer)));
    let events = stream::once(ready(begin)).chain(rest).map(|data| match data {
        Value::String(text) => Ok(Event::default().data(text)),
        data => Event::default().json_data(data),
    });
    Sse::new(events).keep_alive(KeepAlive::new().interval(HEARTBEAT)).into_response()
}

/// Returns the data of the events after the first one.
fn rest(head: &Head, answer: Result<Answer, Problem>) -> Vec<Value> {
    let Answer { text, usage } = match answer {
        Ok(answer) => answer,
        Err(problem) => return vec![error::body(&problem)],
    };
    let mut chunks = vec![
        chunk(head, &choice(&json!({"content": text}), None), None),
        chunk(head, &choice(&json!({}), Some("stop")), None),
    ];
    if let Some(usage) = &usage {
        chunks.push(chunk(head, &json!([]), Some(&ChatUsage::from(usage))));
    }
    chunks.push(json!("[DONE]"));
    chunks
}

fn choice(delta: &Value, finish_reason: Option<&str>) -> Value {
    json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason}])
}

fn chunk(Head { id, created, model }: &Head, choices: &Value, usage: Option<&ChatUsage>) -> Value {
    json!({
        "id": id, "object": "chat.completion.chunk", "created": created, "model": model, "choices": choices,
        "usage": usage,
    })
}
