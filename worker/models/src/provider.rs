//! Selects the protocol of a provider.

use crate::protocol::{AnswerStream, Error, RequestContext, TurnWriter};
use crate::{anthropic, openai};
use bloomery_crds::v1alpha1::ModelProvider;
use bloomery_engine::event::{Answer, RequestedCall};
use bloomery_engine::history::ModelMessage;
use bloomery_http::credential::Credential;
use reqwest::header::{AUTHORIZATION, HeaderName, HeaderValue};
use serde_json::Value;

/// Writes the part of a request before its turns. Returns these bytes and the writer of the turns.
pub(crate) fn begin_request(context: RequestContext<'_>) -> serde_json::Result<(Vec<u8>, Box<dyn TurnWriter>)> {
    match context.endpoint.provider {
        ModelProvider::Openai => openai::request::begin(context),
        ModelProvider::Anthropic => anthropic::request::begin(context),
    }
}

/// Reads the body of a successful response.
pub(crate) fn read_answer(provider: ModelProvider, body: &[u8]) -> Result<Answer, Error> {
    match provider {
        ModelProvider::Openai => openai::answer::read(body),
        ModelProvider::Anthropic => anthropic::answer::read(body),
    }
}

/// Creates the reader of a streamed response.
pub(crate) fn answer_stream(provider: ModelProvider) -> Box<dyn AnswerStream> {
    match provider {
        ModelProvider::Openai => Box::<openai::stream::StreamedAnswer>::default(),
        ModelProvider::Anthropic => Box::<anthropic::stream::StreamedAnswer>::default(),
    }
}

/// Returns the text and the calls of an earlier answer.
pub(crate) fn text_and_calls(answer: &ModelMessage) -> (String, Vec<RequestedCall>) {
    // The worker serialized this message itself, so parsing does not fail.
    let message: Value = serde_json::from_str(&answer.message).unwrap_or_default();
    match answer.provider {
        ModelProvider::Openai => openai::answer::text_and_calls(&message),
        ModelProvider::Anthropic => anthropic::answer::text_and_calls(&message),
    }
}

/// Returns the path of requests below the base URL.
pub(crate) fn request_path(provider: ModelProvider) -> &'static str {
    match provider {
        ModelProvider::Openai => "chat/completions",
        ModelProvider::Anthropic => "messages",
    }
}

/// Returns the headers that a provider requires: the key, if there is one, and the version of the protocol.
pub(crate) fn headers(provider: ModelProvider, key: &Credential) -> Vec<(HeaderName, HeaderValue)> {
    match provider {
        ModelProvider::Openai => key.header("Bearer ").map(|key| (AUTHORIZATION, key)).into_iter().collect(),
        ModelProvider::Anthropic => {
            let key = key.header("").map(|key| (HeaderName::from_static("x-api-key"), key));
            let version = (HeaderName::from_static("anthropic-version"), HeaderValue::from_static(anthropic::VERSION));
            key.into_iter().chain([version]).collect()
        }
    }
}
