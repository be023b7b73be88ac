//! The history of a conversation as it was written for one Model: the next request costs what is new in it, and begins
//! with the bytes of the one before, which is what providers' prompt caches are keyed by.

use super::extra::Refused;
use super::wire::{self, Asking, Piece, Writer};
use bloomery_crds::run::ModelEndpoint;
use bloomery_engine::event::RequestedCall;
use bloomery_engine::history::{ModelMessage, Turn};
use bytes::Bytes;
use std::collections::BTreeMap;

/// Writes the body of a request that stands alone.
pub(super) fn body(asking: Asking<'_>) -> serde_json::Result<Bytes> {
    History::default().body(asking)
}

/// The latest request of a conversation as it was written.
#[derive(Debug, Default)]
pub(super) struct History {
    begun: Option<Begun>,
}

#[derive(Debug)]
struct Begun {
    /// All of it. It is sent from here, and gone on with where it is once nobody sends it any more.
    body: Bytes,
    /// How much of it stays: all but its end.
    stays: usize,
    writer: Box<dyn Writer>,
    turns: usize,
    number: u32,
    refused: Refused,
    /// The ids of the latest answer's calls, where another Model gave it: which they have, and which are written.
    renamed: BTreeMap<String, String>,
}

impl History {
    /// Writes the body of the next request. System prompt, tools and temperature are those of the request before: a
    /// conversation never changes them.
    pub(super) fn body(&mut self, asking: Asking<'_>) -> serde_json::Result<Bytes> {
        // One that could not be written to its end is not gone on with.
        let begun = self.begun.take().filter(|begun| begun.goes_on(asking));
        let mut begun = begun.map_or_else(|| Begun::new(asking), Ok)?;
        begun.go_on(asking)?;
        let body = begun.body.clone();
        self.begun = Some(begun);
        Ok(body)
    }

    /// Lets go of what is held: another Model has gone on with the conversation.
    pub(super) fn forget(&mut self) {
        self.begun = None;
    }
}

impl Begun {
    fn new(asking: Asking<'_>) -> serde_json::Result<Self> {
        let (bytes, writer) = wire::begin(asking)?;
        let (number, refused) = (asking.request.history, asking.refused.clone());
        let stays = bytes.len();
        Ok(Self { body: bytes.into(), stays, writer, turns: 0, number, refused, renamed: BTreeMap::new() })
    }

    /// Adds what is new.
    fn go_on(&mut self, asking: Asking<'_>) -> serde_json::Result<()> {
        let mut bytes = Vec::from(std::mem::take(&mut self.body));
        bytes.truncate(self.stays);
        for turn in asking.request.turns.iter().skip(self.turns) {
            self.add(&mut bytes, turn, asking.endpoint)?;
        }
        self.stays = bytes.len();
        bytes.extend_from_slice(self.writer.end());
        self.body = bytes.into();
        Ok(())
    }

    fn goes_on(&self, asking: Asking<'_>) -> bool {
        let Asking { request, refused, .. } = asking;
        self.number == request.history && &self.refused == refused && self.turns <= request.turns.len()
    }

    fn add(&mut self, bytes: &mut Vec<u8>, turn: &Turn, endpoint: &ModelEndpoint) -> serde_json::Result<()> {
        let piece = match turn {
            Turn::User(text) => Piece::User(text),
            Turn::Assistant(said) if is_own(said, endpoint) => {
                self.renamed.clear();
                Piece::Own(&said.message)
            }
            Turn::Assistant(said) => {
                let (text, calls) = wire::told(said);
                Piece::Told { text, calls: self.rename(calls) }
            }
            Turn::ToolResult { id, text } => Piece::Result { id: self.renamed.get(id).unwrap_or(id), text },
        };
        self.writer.add(bytes, &piece)?;
        self.turns += 1;
        Ok(())
    }

    /// Gives calls ids that every provider takes, and that no other call of the conversation has.
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

/// Whether a message can go back as it came. Fields of one Model's own, such as its reasoning and the signatures on
/// that, mean nothing to another, and some refuse them.
fn is_own(said: &ModelMessage, endpoint: &ModelEndpoint) -> bool {
    said.provider == endpoint.provider && said.model.as_ref().is_none_or(|model| model == &endpoint.name)
}

#[cfg(test)]
mod tests;
