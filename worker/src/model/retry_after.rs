//! `Retry-After`, in both its forms.

use jiff::Timestamp;
use std::time::Duration;

/// How long a server asks to wait, seen from `now`; none where it says nothing that can be understood.
pub(super) fn parse(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<f64>() {
        // Whole seconds by the standard; some servers send fractions.
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let at = jiff::fmt::rfc2822::parse(value).ok()?.timestamp();
    // A date that has passed: at once.
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
    fn both_forms_are_understood(#[case] value: &str, #[case] millis: Option<u64>) {
        let now: Timestamp = "1994-11-06T08:49:00Z".parse().unwrap();
        assert_eq!(parse(value, now), millis.map(Duration::from_millis));
    }
}
