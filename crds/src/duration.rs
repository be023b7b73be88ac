//! Reads durations of bounded length.
//!
//! `kube::core::Duration` panics at a number that is too large, and at a sign within the text. The API server refuses such durations in
//! custom resources. Settings, annotations, reports and files have no such check.

use kube::core::Duration;
use kube::core::duration::ParseError;
use serde::{Deserialize, Deserializer, de};

/// The longest duration in hours: about 114 years.
const MAX_HOURS: u64 = 1_000_000;

/// The largest number of bytes of a text.
const MAX_BYTES: usize = 64;

/// The largest number of digits in a row. With [`MAX_BYTES`], no sum is too large for a [`std::time::Duration`].
const MAX_DIGITS: usize = 12;

/// The reason why a text is not a duration.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The text does not have the notation of Kubernetes.
    #[error(transparent)]
    Notation(#[from] ParseError),
    /// A sign is within the text.
    #[error("a sign may only be the first character")]
    Sign,
    /// The duration is too long, or its text is.
    #[error("it must be at most {MAX_HOURS}h, in at most {MAX_BYTES} characters")]
    TooLong,
}

/// Parses a duration in the notation of Kubernetes, such as `1h30m`. It may be zero or negative.
///
/// # Errors
/// Returns an error if the text is not a duration, or if the duration is too long.
pub fn parse(text: &str) -> Result<Duration, Error> {
    if text.len() > MAX_BYTES || text.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() > MAX_DIGITS) {
        return Err(Error::TooLong);
    }
    if text.chars().skip(1).any(|c| matches!(c, '+' | '-')) {
        return Err(Error::Sign);
    }
    let parsed: Duration = text.parse()?;
    let is_long = std::time::Duration::from(parsed) > std::time::Duration::from_hours(MAX_HOURS);
    if is_long { Err(Error::TooLong) } else { Ok(parsed) }
}

/// Reads an optional field. Use it with `default`.
pub(crate) fn optional<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(|text| parse(&text).map_err(de::Error::custom)).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v1alpha1::Limits;
    use rstest::rstest;

    #[rstest]
    #[case("1h30m", 5400)]
    #[case("1000000h", 3_600_000_000)]
    #[case("0.5m", 30)]
    #[case("+90s", 90)]
    #[case("0", 0)]
    fn a_duration_in_bounds_is_parsed(#[case] text: &str, #[case] seconds: u64) {
        assert_eq!(parse(text).unwrap(), std::time::Duration::from_secs(seconds));
    }

    #[rstest]
    #[case("18446744073709551615h")]
    #[case("999999999999h")]
    #[case("1000000h1s")]
    #[case("-1000001h")]
    #[case("1h-5s")]
    #[case("--5s")]
    #[case("10")]
    #[case("1d")]
    fn another_text_is_refused_without_a_panic(#[case] text: &str) {
        assert!(parse(text).is_err(), "{text}");
        let limits = serde_json::json!({ "duration": text });
        assert!(serde_json::from_value::<Limits>(limits).is_err(), "{text}");
    }

    #[test]
    fn the_longest_text_does_not_overflow() {
        assert_eq!(parse(&"999999999999h".repeat(4)), Err(Error::TooLong));
        assert_eq!(parse(&"9".repeat(MAX_BYTES + 1)), Err(Error::TooLong));
    }
}
