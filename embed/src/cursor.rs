//! The position of a client in the events of a Job.

use std::fmt;
use std::str::FromStr;

/// The position of a client in the events of a Job: the number of the last event that it has. Events are numbered from 1 without gaps, on
/// each runtime alike, so any replica of a host can continue from a cursor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor(u64);

/// The error of a text that is no cursor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a cursor is the number of an event, such as 17; leave it out to begin with the first event")]
pub struct InvalidCursor;

impl Cursor {
    /// The position before the first event.
    pub const START: Self = Self(0);

    /// Returns the position after an event.
    pub fn after(seq: u64) -> Self {
        Self(seq)
    }

    /// Returns the number of the last event that a client at this position has; 0 for none.
    pub(crate) fn seq(self) -> u64 {
        self.0
    }

    /// Returns the number of the next event for a client at this position.
    pub(crate) fn next_seq(self) -> u64 {
        self.seq().saturating_add(1)
    }

    /// Returns whether a client at this position lacks an event.
    pub fn lacks(self, seq: u64) -> bool {
        seq > self.0
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Cursor {
    type Err = InvalidCursor;

    fn from_str(text: &str) -> Result<Self, InvalidCursor> {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = is_number.then(|| text.parse().ok()).flatten();
        number.map(Self).ok_or(InvalidCursor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::start("0", Some(Cursor::START))]
    #[case::number("17", Some(Cursor::after(17)))]
    #[case::empty("", None)]
    #[case::sign("+1", None)]
    #[case::blank(" 1", None)]
    #[case::too_large("18446744073709551616", None)]
    fn a_cursor_is_a_number(#[case] text: &str, #[case] expected: Option<Cursor>) {
        assert_eq!(text.parse().ok(), expected);
        if let Some(cursor) = expected {
            assert_eq!(cursor.to_string(), text);
        }
    }

    #[test]
    fn a_client_lacks_the_events_after_its_cursor() {
        assert!(Cursor::START.lacks(1));
        assert!(!Cursor::after(1).lacks(1));
        assert!(Cursor::after(1).lacks(2));
    }
}
