//! Parses server-sent events. Models only use the data of each event, so everything else is ignored.
//!
//! The MCP client uses the crate `sse-stream`, which does not fit here for three reasons:
//! - It buffers a line and an event without a limit.
//! - It fails on repeated fields, on data that is not UTF-8, and on unknown fields, which the standard requires to ignore. After a
//!   failure, the rest of the chunk is lost.
//! - It drops a last event that is not followed by an empty line.

/// Splits a stream of bytes into the data of its events. It only buffers the incomplete event.
#[derive(Debug)]
pub(crate) struct Events {
    max: usize,
    line: Vec<u8>,
    data: Vec<u8>,
    /// Whether the last chunk ended with a carriage return, whose line feed may follow.
    after_return: bool,
}

/// The error of an event that exceeds the limit.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TooLarge;

impl Events {
    /// Creates a parser that accepts events of at most `max` bytes.
    pub(crate) fn new(max: usize) -> Self {
        Self { max, line: Vec::new(), data: Vec::new(), after_return: false }
    }

    /// Adds the next chunk. Returns the data of the events that it completes.
    pub(crate) fn push(&mut self, chunk: &[u8]) -> Result<Vec<String>, TooLarge> {
        let mut complete = Vec::new();
        let mut rest = chunk;
        if !chunk.is_empty() && std::mem::take(&mut self.after_return) {
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(at) = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')) {
            let (line, end) = rest.split_at(at);
            self.append(line)?;
            complete.extend(self.end_line());
            rest = match end {
                [b'\r', b'\n', rest @ ..] | [_, rest @ ..] => rest,
                [] => end,
            };
            self.after_return = end == b"\r";
        }
        self.append(rest)?;
        Ok(complete)
    }

    /// Returns the data of the last event if no empty line follows it, or else an empty text.
    pub(crate) fn rest(mut self) -> String {
        self.end_line();
        self.take_data().unwrap_or_default()
    }

    fn append(&mut self, part: &[u8]) -> Result<(), TooLarge> {
        if part.len() > self.max.saturating_sub(self.line.len() + self.data.len()) {
            return Err(TooLarge);
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    /// Processes a complete line. An empty line completes an event. Returns the data of that event.
    fn end_line(&mut self) -> Option<String> {
        let line = std::mem::take(&mut self.line);
        let text = line.strip_prefix("\u{feff}".as_bytes()).unwrap_or(&line);
        if text.is_empty() {
            return self.take_data();
        }
        if let Some(data) = text.strip_prefix(b"data:") {
            self.data.extend_from_slice(data.strip_prefix(b" ").unwrap_or(data));
            self.data.push(b'\n');
        }
        None
    }

    /// Removes and returns the data of the current event. Returns `None` if the event has no data.
    fn take_data(&mut self) -> Option<String> {
        let mut data = std::mem::take(&mut self.data);
        data.pop()?;
        Some(String::from_utf8_lossy(&data).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rstest::rstest;

    fn all(bytes: &[u8]) -> Vec<String> {
        Events::new(1024).push(bytes).unwrap()
    }

    #[rstest]
    #[case::one("data: {}\n\n", &["{}"])]
    #[case::without_a_space("data:{}\n\n", &["{}"])]
    #[case::carriage_return_and_line_feed("event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", &["a", "b"])]
    #[case::carriage_return("data: a\r\rdata: b\r\r", &["a", "b"])]
    #[case::several_lines("data: a\ndata: b\n\n", &["a\nb"])]
    #[case::empty_data("data:\n\n", &[""])]
    #[case::names_ids_and_comments_are_ignored(": ping\n\nevent: ping\nid: 7\nretry: 9\n\ndata: a\n\n", &["a"])]
    #[case::a_byte_order_mark("\u{feff}data: a\n\n", &["a"])]
    #[case::no_end("data: a\n", &[])]
    fn events_are_parsed_as_the_standard_requires(#[case] stream: &str, #[case] data: &[&str]) {
        assert_eq!(all(stream.as_bytes()), data);
    }

    #[test]
    fn rest_returns_a_last_event_without_an_empty_line() {
        let mut events = Events::new(1024);
        assert_eq!(events.push(b"data: a\n\ndata: [DO").unwrap(), ["a"]);
        assert_eq!(events.push(b"NE]").unwrap(), [""; 0]);
        assert_eq!(events.rest(), "[DONE]");
        assert_eq!(Events::new(8).rest(), "");
    }

    #[test]
    fn the_limit_applies_to_one_line_and_to_many() {
        assert_eq!(Events::new(16).push(&[b'x'; 17]), Err(TooLarge));
        assert_eq!(Events::new(16).push("data: 1\n".repeat(20).as_bytes()), Err(TooLarge));
        let mut events = Events::new(16);
        for _ in 0..100 {
            assert_eq!(events.push(b"data: 1\n\n").unwrap(), ["1"]);
        }
    }

    proptest! {
        #[test]
        fn the_division_into_chunks_does_not_matter(
            stream in "(data: ?|event:|:|[a-c{}]{1,3}|\r\n|\n|\r|\n\n|é){0,40}",
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let bytes = stream.as_bytes();
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).chain([0, bytes.len()]).collect();
            at.sort_unstable();
            let mut events = Events::new(1024);
            let mut found = Vec::new();
            for pair in at.windows(2) {
                found.extend(events.push(&bytes[pair[0]..pair[1]]).unwrap());
            }
            let mut whole = Events::new(1024);
            prop_assert_eq!(found, whole.push(bytes).unwrap());
            prop_assert_eq!(events.rest(), whole.rest());
        }
    }
}
