//! Sends an answer: splits it into pieces, delays the pieces, and ends the answer as the script says.

use std::io;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use futures::stream;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::answer::{Answer, FILLER_BLOCK_BYTES, PLACEHOLDER, Text, UNKNOWN_FIELD, filler_block};
use super::event::{Data, Event};
use super::request::{Protocol, Request};
use super::wire;

/// The lengths of the pieces of a stream, in bytes. They repeat, and do not depend on where events end.
const PIECE_LENGTHS: [usize; 8] = [1, 2, 3, 29, 61, 127, 5, 211];

/// An answer that is ready to be sent.
#[derive(Debug)]
pub(super) struct Delivery {
    frames: Vec<Frame>,
    is_stream: bool,
    pause: Option<Duration>,
    ending: Ending,
}

/// The end of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ending {
    /// The answer is complete.
    Whole,
    /// The connection is closed halfway, in the middle of an event.
    Reset,
    /// The answer ends halfway without an error.
    Short,
    /// The answer is complete except for the event that marks the end of the stream.
    Unmarked,
    /// The server sends half of the answer and keeps the connection open.
    Stalled,
    /// An error event follows half of the answer.
    Error(Event),
}

/// Bytes that are sent several times.
#[derive(Clone, Debug)]
struct Frame {
    bytes: Bytes,
    times: usize,
}

impl Frame {
    fn new(event: &Event) -> Self {
        Self { bytes: event.to_text().into(), times: event.times }
    }
}

/// A step of sending an answer.
enum Step {
    Send(Bytes),
    Pause(Duration),
    Stall,
    Reset,
}

impl Delivery {
    /// Prepares an answer in the form that the request asks for.
    pub(super) fn new(request: &Request, answer: &Answer) -> Self {
        let frames = if request.stream {
            let events = wire::events(request, answer);
            if answer.unusual {
                unusual_frames(request.protocol, events)
            } else {
                events.iter().map(Frame::new).collect()
            }
        } else {
            let mut value = wire::whole(request, answer);
            if answer.unusual {
                add_fields(&mut value);
            }
            frames_of_whole(&value, answer)
        };
        Self { frames, is_stream: request.stream, pause: None, ending: Ending::Whole }
    }

    /// Pauses before each event. An answer without events is sent in eight pieces.
    pub(super) fn slowly(mut self, pause: Duration) -> Self {
        if !self.is_stream {
            let cut = |Frame { mut bytes, times }: Frame| {
                let length = bytes.len() / 8 + 1;
                std::iter::from_fn(move || {
                    let part = bytes.split_to(length.min(bytes.len()));
                    (!part.is_empty()).then_some(Frame { bytes: part, times })
                })
            };
            self.frames = self.frames.into_iter().flat_map(cut).collect();
        }
        Self { pause: Some(pause), ..self }
    }

    pub(super) fn ending(self, ending: Ending) -> Self {
        Self { ending, ..self }
    }

    /// Starts sending. Cancelling `stop` ends pauses and stalls by closing the connection.
    pub(super) fn into_response(self, stop: CancellationToken) -> Response {
        let is_stream = self.is_stream;
        if let (false, [Frame { bytes, times: 1 }], None, Ending::Whole) =
            (is_stream, self.frames.as_slice(), self.pause, &self.ending)
        {
            return ([(CONTENT_TYPE, "application/json")], bytes.clone()).into_response();
        }
        let body = Body::from_stream(stream::unfold(Box::new(self.steps()), move |mut steps| {
            let stop = stop.clone();
            async move {
                let sent = next(&mut *steps, &stop).await?;
                Some((sent, steps))
            }
        }));
        if is_stream {
            ([(CONTENT_TYPE, "text/event-stream; charset=utf-8"), (CACHE_CONTROL, "no-cache")], body).into_response()
        } else {
            ([(CONTENT_TYPE, "application/json")], body).into_response()
        }
    }

    fn steps(self) -> impl Iterator<Item = Step> + Send + 'static {
        let Self { mut frames, is_stream, pause, ending } = self;
        let last = match ending {
            Ending::Whole => None,
            Ending::Unmarked if is_stream => {
                frames.pop();
                None
            }
            Ending::Unmarked | Ending::Short => {
                halve(&mut frames);
                None
            }
            Ending::Reset => {
                halve(&mut frames);
                Some(Step::Reset)
            }
            Ending::Stalled => {
                halve(&mut frames);
                Some(Step::Stall)
            }
            Ending::Error(event) => {
                frames.truncate(frames.len().div_ceil(2));
                frames.push(Frame::new(&event));
                None
            }
        };
        let sent = frames.into_iter().flat_map(move |Frame { bytes, times }| {
            let repeated = std::iter::repeat_n(bytes, times);
            let pieces = repeated.flat_map(move |bytes| pieces(bytes, is_stream && times == 1).map(Step::Send));
            pause.map(Step::Pause).into_iter().chain(pieces)
        });
        sent.chain(last)
    }
}

/// Performs steps until there are bytes to send. Returns `None` at the end of the answer.
async fn next(
    steps: &mut (impl Iterator<Item = Step> + Send + ?Sized),
    stop: &CancellationToken,
) -> Option<io::Result<Bytes>> {
    loop {
        let next = steps.next()?;
        // Yield, so that the server sends the previous piece on its own. Otherwise it could merge the piece with the next one,
        // or lose it when the connection closes.
        tokio::task::yield_now().await;
        match next {
            Step::Send(bytes) => return Some(Ok(bytes)),
            Step::Pause(pause) => {
                tokio::select! {
                    () = tokio::time::sleep(pause) => {}
                    () = stop.cancelled() => return Some(Err(connection_reset())),
                }
            }
            Step::Stall => {
                stop.cancelled().await;
                return Some(Err(connection_reset()));
            }
            Step::Reset => return Some(Err(connection_reset())),
        }
    }
}

/// Returns the error that closes a connection in the middle of an answer.
fn connection_reset() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionReset, "the script cuts the answer off")
}

/// Keeps half of the frames and half of the next frame, so the answer ends in the middle of an event.
fn halve(frames: &mut Vec<Frame>) {
    frames.truncate(frames.len() / 2 + 1);
    if let Some(last) = frames.last_mut() {
        last.bytes.truncate(last.bytes.len() / 2);
    }
}

/// Splits bytes into pieces: within events, between the two line feeds that end an event, and after the first byte of
/// multi-byte characters. If not `is_split`, returns the bytes as one piece.
fn pieces(bytes: Bytes, is_split: bool) -> impl Iterator<Item = Bytes> + Send + 'static {
    let mut rest = bytes;
    let mut lengths = PIECE_LENGTHS.iter().cycle();
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if !is_split {
            return Some(std::mem::take(&mut rest));
        }
        let max_length = (*lengths.next()?).min(rest.len());
        let is_cut_after = |byte: &u8| *byte == b'\n' || *byte == b'\\' || *byte >= 0xC0;
        let length = rest.iter().take(max_length).position(is_cut_after).map_or(max_length, |at| at + 1);
        Some(rest.split_to(length))
    })
}

/// Writes an answer in one piece, and replaces its placeholders by the arguments of calls and by filler. Arguments that
/// are JSON are inserted unchanged, even with duplicate keys. Other arguments are inserted as a JSON string.
fn frames_of_whole(value: &Value, answer: &Answer) -> Vec<Frame> {
    let mut text = value.to_string();
    for (index, call) in answer.calls.iter().enumerate() {
        let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&call.arguments).is_ok();
        let written = if is_json { call.arguments.clone() } else { Value::from(call.arguments.as_str()).to_string() };
        text = text.replace(&format!("\"{PLACEHOLDER}{index}\""), &written);
    }
    let frame = |text: &str| Frame { bytes: Bytes::copy_from_slice(text.as_bytes()), times: 1 };
    match (&answer.text, text.split_once(PLACEHOLDER)) {
        (Some(Text::Filler(bytes)), Some((before, after))) => {
            vec![
                frame(before),
                Frame { bytes: filler_block().into(), times: bytes.div_ceil(FILLER_BLOCK_BYTES) },
                frame(after),
            ]
        }
        _ => vec![frame(&text)],
    }
}

/// Writes a stream in a valid but rare form.
fn unusual_frames(protocol: Protocol, mut events: Vec<Event>) -> Vec<Frame> {
    for event in &mut events {
        if let Data::Json(value) = &mut event.data {
            add_fields(value);
        }
    }
    // A client can only ignore an unknown event if the protocol names its events.
    if protocol == Protocol::Anthropic {
        events.insert(1.min(events.len()), Event::named("x_news", json!({"type": "x_news"})));
    }
    events.iter().map(|event| Frame { bytes: event.to_unusual_text().into(), times: event.times }).collect()
}

/// Adds an unknown field to each object, except in the inputs of tools.
fn add_fields(value: &mut Value) {
    match value {
        Value::Object(object) => {
            object.iter_mut().filter(|(key, _)| *key != "input").for_each(|(_, value)| add_fields(value));
            object.insert(UNKNOWN_FIELD.to_owned(), json!({"of": ["a", "later", "version"], "at": null}));
        }
        Value::Array(values) => values.iter_mut().for_each(add_fields),
        _ => {}
    }
}
