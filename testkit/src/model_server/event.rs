//! One event of a stream, and how text is cut into the events that carry it.

use serde_json::Value;

/// An event as server-sent events have it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Event {
    /// Its name, where the protocol names its events.
    pub(super) name: Option<&'static str>,
    pub(super) data: Data,
    /// How often it is sent, one after the other.
    pub(super) times: usize,
}

/// What an event carries.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Data {
    Json(Value),
    /// A text that is no JSON, such as the mark of the end.
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

    /// The event as it goes over the wire.
    pub(super) fn to_text(&self) -> String {
        let name = self.name.map(|name| format!("event: {name}\n")).unwrap_or_default();
        match &self.data {
            Data::Json(value) => format!("{name}data: {value}\n\n"),
            Data::Text(text) => format!("{name}data: {text}\n\n"),
        }
    }

    /// The same, as few servers write it: a comment before, no space after the colons, other line ends.
    pub(super) fn to_unusual_text(&self) -> String {
        let text = self.to_text().replacen("event: ", "event:", 1).replacen("data: ", "data:", 1);
        format!(": still here\n{text}").replace('\n', "\r\n")
    }
}

/// How many characters the parts of a text have, by turns: short ones cut words, numbers and the escapes of JSON in
/// two, long ones keep the number of events down.
const LENGTHS: [usize; 8] = [1, 2, 3, 5, 8, 13, 21, 34];

/// Cuts a text into the parts that a stream sends one by one.
pub(super) fn parts(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    let mut lengths = LENGTHS.iter().cycle();
    std::iter::from_fn(move || {
        let length = *lengths.next()?;
        let end = rest.char_indices().nth(length).map_or(rest.len(), |(end, _)| end);
        let (part, after) = rest.split_at_checked(end)?;
        rest = after;
        (!part.is_empty()).then_some(part)
    })
}
