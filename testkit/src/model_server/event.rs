//! The events of a stream, and the split of a text into the parts that single events contain.

use serde_json::Value;

/// A server-sent event.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Event {
    /// The name, if the protocol names its events.
    pub(super) name: Option<&'static str>,
    pub(super) data: Data,
    /// The number of times that the event is sent in a row.
    pub(super) times: usize,
}

/// The data of an event.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Data {
    Json(Value),
    /// A text other than JSON, such as `[DONE]`.
    Text(&'static str),
}

impl Event {
    pub(super) fn named(name: &'static str, data: Value) -> Self {
        Self { name: Some(name), data: Data::Json(data), times: 1 }
    }

    pub(super) fn unnamed(data: Value) -> Self {
        Self { name: None, data: Data::Json(data), times: 1 }
    }

    pub(super) fn text(text: &'static str) -> Self {
        Self { name: None, data: Data::Text(text), times: 1 }
    }

    /// Returns the event in the format of server-sent events.
    pub(super) fn to_text(&self) -> String {
        let name = self.name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        match &self.data {
            Data::Json(value) => format!("{name}data: {value}\n\n"),
            Data::Text(text) => format!("{name}data: {text}\n\n"),
        }
    }

    /// Returns the event in a valid but rare format: after a comment, without spaces after the colons, with CRLF.
    pub(super) fn to_unusual_text(&self) -> String {
        let text = self.to_text().replacen("event: ", "event:", 1).replacen("data: ", "data:", 1);
        format!(": still here\n{text}").replace('\n', "\r\n")
    }
}

/// The lengths of the parts of a text, in characters. They repeat. Short parts split words, numbers and JSON escapes; long
/// parts limit the number of events.
const PART_LENGTHS: [usize; 8] = [1, 2, 3, 5, 8, 13, 21, 34];

/// Splits a text into the parts that a stream sends one by one.
pub(super) fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    let mut lengths = PART_LENGTHS.iter().cycle();
    std::iter::from_fn(move || {
        let length = *lengths.next()?;
        let end = rest.char_indices().nth(length).map_or(rest.len(), |(end, _)| end);
        let (part, after) = rest.split_at_checked(end)?;
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}
