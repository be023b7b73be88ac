//! Parses the header `Retry-After`.

use jiff::Timestamp;
use std::time::Duration;

/// Returns the delay from `now` that a header value requests, in seconds or as a date. Returns `None` if the value is invalid.
pub(crate) fn parse(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        // The standard only allows whole seconds, but some servers send fractions.
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let at = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    // A date in the past means no delay.
    Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case("7", Some(7_000))]
    #[case(" 0 ", Some(0))]
    #[case("1.5", Some(1_500))]
    #[case("Sun, 06 Nov 1994 08:49:37 GMT", Some(37_000))]
    #[case("Sun, 06 Nov 1994 08:48:00 GMT", Some(0))]
    #[case("-1", None)]
    #[case("NaN", None)]
    #[case("1e400", None)]
    #[case("soon", None)]
    #[case("", None)]
    fn seconds_and_dates_are_parsed(#[case] value: &str, #[case] millis: Option<u64>) {
        let now: Timestamp = "1994-11-06T08:49:00Z".parse().unwrap();
        assert_eq!(parse(value, now), millis.map(Duration::from_millis));
    }
}
