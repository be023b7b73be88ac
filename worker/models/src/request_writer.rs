//! Writes the requests of the main loop's conversation with one Model.
//!
//! Each request appends the new turns to the bytes of the previous request. Therefore only the new turns are serialized, and the
//! provider's prompt cache applies, because its keys are prefixes of requests.

use crate::optional_fields::UnsupportedFields;
use crate::protocol::{RequestContext, TurnContent, TurnWriter};
use crate::provider;
use bloomery_crds::run::ModelEndpoint;
use bloomery_engine::event::RequestedCall;
use bloomery_engine::history::{ModelMessage, Turn};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Writes the body of a single request.
pub(crate) fn single_body(context: RequestContext<'_>) -> serde_json::Result<Bytes> {
    RequestWriter::default().next_body(context)
}

/// Writes the requests of one conversation after another. It keeps the latest request, which the next one extends.
#[derive(Debug, Default)]
pub(crate) struct RequestWriter {
    latest: Option<WrittenRequest>,
}

#[derive(Debug)]
struct WrittenRequest {
    /// The whole body. A request that is being sent shares this buffer. After it was sent, the buffer is extended in place.
    body: Bytes,
    /// The length of the prefix that later requests keep. The prefix is the body without its ending.
    prefix_length: usize,
    writer: Box<dyn TurnWriter>,
    /// The number of written turns.
    turns: usize,
    /// The [`ModelRequest::turns_version`](bloomery_engine::step::ModelRequest::turns_version) of the turns.
    turns_version: u32,
    unsupported: UnsupportedFields,
    /// The calls of the latest answer, if another Model gave it. Maps the id of each call in the log to the id that is sent.
    renamed: BTreeMap<String, String>,
}

impl RequestWriter {
    /// Writes the body of the next request. The system prompt, the tools and the temperature never change within a conversation, so they
    /// are taken from the previous request.
    pub(crate) fn next_body(&mut self, context: RequestContext<'_>) -> serde_json::Result<Bytes> {
        // After an error below, `latest` stays empty, so an incomplete request is never extended.
        let latest = self.latest.take().filter(|latest| latest.can_be_extended(context));
        let mut latest = latest.map_or_else(|| WrittenRequest::begin(context), Ok)?;
        latest.extend(context)?;
        let body = latest.body.clone();
        self.latest = Some(latest);
        Ok(body)
    }

    /// Clears the request, after another Model continued the conversation.
    pub(crate) fn clear(&mut self) {
        self.latest = None;
    }
}

impl WrittenRequest {
    fn begin(context: RequestContext<'_>) -> serde_json::Result<Self> {
        let (bytes, writer) = provider::begin_request(context)?;
        let (turns_version, unsupported) = (context.request.turns_version, context.unsupported.clone());
        let prefix_length = bytes.len();
        let renamed = BTreeMap::new();
        Ok(Self { body: bytes.into(), prefix_length, writer, turns: 0, turns_version, unsupported, renamed })
    }

    /// Appends the new turns.
    fn extend(&mut self, context: RequestContext<'_>) -> serde_json::Result<()> {
        let mut bytes = Vec::from(std::mem::take(&mut self.body));
        bytes.truncate(self.prefix_length);
        for turn in context.request.turns.iter().skip(self.turns) {
            self.append(&mut bytes, turn, context.endpoint)?;
        }
        self.prefix_length = bytes.len();
        bytes.extend_from_slice(self.writer.ending());
        self.body = bytes.into();
        Ok(())
    }

    fn can_be_extended(&self, context: RequestContext<'_>) -> bool {
        let RequestContext { request, unsupported, .. } = context;
        // A request without an answer is the first one of a conversation, and the latest request may be of another conversation.
        request.turns.iter().any(|turn| matches!(turn, Turn::Assistant(_)))
            && self.turns_version == request.turns_version
            && &self.unsupported == unsupported
            && self.turns <= request.turns.len()
    }

    fn append(&mut self, bytes: &mut Vec<u8>, turn: &Turn, endpoint: &ModelEndpoint) -> serde_json::Result<()> {
        let content = match turn {
            Turn::User(text) => TurnContent::User(text),
            Turn::Assistant(answer) if is_own(answer, endpoint) => {
                self.renamed.clear();
                TurnContent::OwnAnswer(&answer.message)
            }
            Turn::Assistant(answer) => {
                let (text, calls) = provider::text_and_calls(answer);
                TurnContent::OtherAnswer { text, calls: self.rename(calls) }
            }
            Turn::ToolResult { id, text } => TurnContent::ToolResult { id: self.renamed.get(id).unwrap_or(id), text },
        };
        self.writer.append(bytes, &content)?;
        self.turns += 1;
        Ok(())
    }

    /// Gives each call an id that every provider accepts and that is unique within the conversation.
    fn rename(&mut self, calls: Vec<RequestedCall>) -> Vec<RequestedCall> {
        self.renamed.clear();
        let renamed = calls.into_iter().enumerate().map(|(at, call)| {
            let id = format!("call_{}_{at}", self.turns);
            self.renamed.insert(call.id, id.clone());
            RequestedCall { id, ..call }
        });
        renamed.collect()
    }
}

/// Returns whether the Model of `endpoint` gave an answer, so that the message can be sent back verbatim. Some of its fields, such as
/// reasoning and its signature, are only valid for the same Model.
fn is_own(answer: &ModelMessage, endpoint: &ModelEndpoint) -> bool {
    answer.provider == endpoint.provider && answer.model.as_ref().is_none_or(|model| model == &endpoint.name)
}

#[cfg(test)]
mod tests;
