//! The lines of the log: events in CloudEvents 1.0 envelopes, each chained to the line before it.
//!
//! `seq` counts from 1 without gaps. `prevhash` is the SHA-256 of the line before, or of an empty text for the first line. A
//! missing, moved or edited line is an error. Names of extension attributes are lower case, as CloudEvents requires.

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod older;

use crate::event::Event;
use bloomery_crds::Digest;
use bloomery_crds::v1alpha1::LogPosition;
use serde::{Deserialize, Serialize};

/// The version of the envelope and of every event in it.
pub const SCHEMA_VERSION: u32 = 1;

/// The time of an event. The driver passes it in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventTime {
    /// The wall clock, RFC 3339 in UTC. It is for people: no decision depends on it.
    pub time: String,
    /// The milliseconds of work since the previous event, by a monotonic clock; 0 for the first event of an epoch.
    pub elapsed_ms: u64,
}

/// An event with its position in the log.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The position, from 1.
    pub seq: u64,
    /// The time of the event.
    pub stamp: EventTime,
    /// The event.
    pub event: Event,
}

/// The reason why a line is not the next line of a log.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The line is not an event of a version that this engine reads.
    #[error("line {seq} of the log cannot be read: {message}")]
    Unreadable {
        /// The position of the line.
        seq: u64,
        /// The reader's error.
        message: String,
    },
    /// A line is missing or appears twice.
    #[error("line {expected} of the log is missing: found line {found} in its place")]
    Gap {
        /// The expected position.
        expected: u64,
        /// The position that was found.
        found: u64,
    },
    /// A line before this one was changed after this one was written.
    #[error("the log was edited before line {seq}: its hash does not match")]
    Broken {
        /// The first line whose hash does not match.
        seq: u64,
    },
    /// The operator has acknowledged a different line at this position.
    #[error("line {seq} of the log differs from the line that the operator has acknowledged")]
    NotAcknowledged {
        /// The position of the line.
        seq: u64,
    },
    /// The line belongs to another conversation.
    #[error("line {seq} of the log belongs to {found}, not to {expected}")]
    Foreign {
        /// The position of the line.
        seq: u64,
        /// The conversation of the line.
        found: String,
        /// The conversation of the log.
        expected: String,
    },
}

/// A line of the log: a CloudEvents envelope with an event.
#[derive(Serialize, Deserialize)]
struct Envelope<E> {
    specversion: String,
    id: String,
    source: String,
    time: String,
    schemaversion: u32,
    seq: u64,
    prevhash: Digest,
    elapsedms: u64,
    #[serde(flatten)]
    event: E,
}

/// Returns the source of a line, which names its conversation, or nothing if the text is not a line of a log.
pub fn read_source(line: &str) -> Option<String> {
    #[derive(Deserialize)]
    struct WithSource {
        source: String,
    }
    serde_json::from_str::<WithSource>(line).ok().map(|line| line.source)
}

/// Reads a line by itself, and returns its source and its event. Its place in the log is not checked.
///
/// # Errors
/// The reason why the line is not an event of a version that this engine reads.
pub fn read_alone(line: &str) -> Result<(String, Entry), String> {
    read_envelope(line).map(|envelope| (envelope.source.clone(), envelope.into_entry()))
}

fn read_envelope(line: &str) -> Result<Envelope<Event>, String> {
    let envelope: Envelope<Event> = serde_json::from_str(line).map_err(|error| error.to_string())?;
    if envelope.schemaversion != SCHEMA_VERSION {
        return Err(format!("schema version {}, this engine reads {SCHEMA_VERSION}", envelope.schemaversion));
    }
    Ok(envelope)
}

impl Envelope<Event> {
    fn into_entry(self) -> Entry {
        let stamp = EventTime { time: self.time, elapsed_ms: self.elapsedms };
        Entry { seq: self.seq, stamp, event: self.event }
    }
}

/// The end of a log. It numbers and chains the lines that are added, and checks the lines that are read.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    source: String,
    /// The number of lines.
    events: u64,
    /// The hash of the last line.
    head: Digest,
    /// The number of lines that the operator has acknowledged, and the hash of the last one.
    acknowledged: Option<(u64, Digest)>,
}

impl Chain {
    /// Returns the empty log of a conversation. `source` names the Job, as `/namespaces/acme/skilljobs/refund/<runKey>`.
    pub fn new(source: impl Into<String>) -> Self {
        Self { source: source.into(), events: 0, head: Digest::of_bytes(b""), acknowledged: None }
    }

    /// Returns the empty log of the same conversation, without an acknowledged position.
    #[must_use]
    pub fn restarted(&self) -> Self {
        Self::new(self.source.clone())
    }

    /// Sets the position that the operator has acknowledged. Reading another line at that position is an error.
    #[must_use]
    pub fn with_acknowledged(self, position: Option<&LogPosition>) -> Self {
        Self { acknowledged: position.map(|position| (position.events, position.head.clone())), ..self }
    }

    /// Returns the number of acknowledged lines, if the log has fewer lines.
    pub fn expected_lines(&self) -> Option<u64> {
        self.acknowledged.as_ref().map(|(events, _)| *events).filter(|events| *events > self.events)
    }

    /// The number of lines.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Returns the position of the log, for reports.
    pub fn position(&self, path: &str) -> LogPosition {
        LogPosition { path: path.to_owned(), events: self.events, head: self.head.clone() }
    }

    /// Adds an event. Returns the line to write, and the event with its position.
    pub fn append(&mut self, event: Event, stamp: EventTime) -> Result<(String, Entry), serde_json::Error> {
        let seq = self.events + 1;
        let line = serde_json::to_string(&Envelope {
            specversion: "1.0".to_owned(),
            id: seq.to_string(),
            source: self.source.clone(),
            time: stamp.time.clone(),
            schemaversion: SCHEMA_VERSION,
            seq,
            prevhash: self.head.clone(),
            elapsedms: stamp.elapsed_ms,
            event: &event,
        })?;
        self.events = seq;
        self.head = Digest::of_bytes(line.as_bytes());
        Ok((line, Entry { seq, stamp, event }))
    }

    /// Reads the next line, without its line feed, and checks that it continues the log.
    pub fn read(&mut self, line: &str) -> Result<Entry, Error> {
        let expected = self.events + 1;
        let envelope = read_envelope(line).map_err(|message| Error::Unreadable { seq: expected, message })?;
        if envelope.seq != expected {
            return Err(Error::Gap { expected, found: envelope.seq });
        }
        if envelope.source != self.source {
            return Err(Error::Foreign { seq: expected, found: envelope.source, expected: self.source.clone() });
        }
        if envelope.prevhash != self.head {
            return Err(Error::Broken { seq: expected });
        }
        let head = Digest::of_bytes(line.as_bytes());
        if self.acknowledged.as_ref().is_some_and(|(events, acknowledged)| *events == expected && *acknowledged != head)
        {
            return Err(Error::NotAcknowledged { seq: expected });
        }
        (self.events, self.head) = (expected, head);
        Ok(envelope.into_entry())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stamp() -> EventTime {
        EventTime { time: "2026-01-01T00:00:00Z".into(), elapsed_ms: 7 }
    }

    fn log(length: u64) -> (Vec<String>, Chain) {
        let mut chain = Chain::new("/namespaces/acme/skilljobs/refund/u-1");
        let event = |epoch| Event::EpochStarted { epoch, attempt: 1, after_disruption: false };
        let lines = (1..=length).map(|epoch| chain.append(event(epoch), stamp()).unwrap().0).collect();
        (lines, chain)
    }

    fn read(lines: &[String]) -> Result<Chain, Error> {
        let mut chain = Chain::new("/namespaces/acme/skilljobs/refund/u-1");
        lines.iter().try_for_each(|line| chain.read(line).map(drop)).map(|()| chain)
    }

    #[test]
    fn the_envelope_is_a_cloud_event() {
        insta::assert_snapshot!(log(1).0[0]);
    }

    #[test]
    fn the_source_of_a_line_can_be_read() {
        assert_eq!(read_source(&log(1).0[0]).as_deref(), Some("/namespaces/acme/skilljobs/refund/u-1"));
        assert_eq!(read_source("{}"), None);
    }

    #[test]
    fn a_line_in_the_middle_of_a_log_can_be_read_alone() {
        let (lines, _) = log(3);
        let (source, entry) = read_alone(&lines[2]).unwrap();
        assert_eq!((source.as_str(), entry.seq, entry.stamp), ("/namespaces/acme/skilljobs/refund/u-1", 3, stamp()));
        assert!(read_alone("2026-01-01T00:00:00Z    9 tool.held").is_err());
        assert!(read_alone(&lines[2].replace("\"schemaversion\":1", "\"schemaversion\":2")).is_err());
    }

    #[test]
    fn written_lines_are_read_back() {
        let (lines, chain) = log(3);
        assert_eq!(read(&lines), Ok(chain));
    }

    #[test]
    fn acknowledged_lines_must_be_in_the_log() {
        let (lines, chain) = log(3);
        let acknowledging = |position: &LogPosition| Chain::new(chain.source.clone()).with_acknowledged(Some(position));
        let mut again = acknowledging(&chain.position("x"));
        for (at, line) in (0..).zip(&lines) {
            assert_eq!((again.events(), again.expected_lines()), (at, Some(3)));
            again.read(line).unwrap();
        }
        assert_eq!((again.events(), again.expected_lines()), (3, None));
        let mut other = acknowledging(&LogPosition { head: Digest::of_bytes(b"other"), ..chain.position("x") });
        let read = lines.iter().map(|line| other.read(line)).collect::<Result<Vec<_>, _>>();
        assert_eq!(read, Err(Error::NotAcknowledged { seq: 3 }));
    }

    #[test]
    fn a_log_of_another_job_is_refused() {
        let (lines, _) = log(1);
        assert!(matches!(Chain::new("/elsewhere").read(&lines[0]), Err(Error::Foreign { seq: 1, .. })));
    }

    proptest! {
        #[test]
        fn missing_moved_and_edited_lines_are_found(at in 0_usize..4, how in 0_u8..3) {
            let (mut lines, _) = log(5);
            match how {
                0 => drop(lines.remove(at)),
                1 => lines.swap(at, at + 1),
                _ => lines[at] = lines[at].replace("2026-01-01", "2026-01-02"),
            }
            prop_assert!(read(&lines).is_err());
        }

        #[test]
        fn no_line_panics(text in ".*") {
            let _ = Chain::new("/x").read(&text);
        }
    }
}
