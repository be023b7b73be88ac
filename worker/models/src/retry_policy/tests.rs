use super::*;
use crate::fixture::patience;

#[test]
fn pauses_take_nothing_of_the_time_for_requests() {
    let (began, seconds) = (Instant::now(), Duration::from_secs);
    let mut attempts = Attempts::new(patience(seconds(3600)), seconds(10), began);
    // 4 s in a request, then a pause.
    assert_eq!(
        attempts.next_delay(RetryDelay::RetryAfter(seconds(60)), began + seconds(4), Duration::ZERO),
        Some(seconds(60))
    );
    assert_eq!(attempts.remaining(began + seconds(64), seconds(60)), seconds(6));
    assert_eq!(
        attempts.next_delay(RetryDelay::RetryAfter(seconds(60)), began + seconds(65), seconds(60)),
        Some(seconds(60))
    );
    assert_eq!(attempts.remaining(began + seconds(125), seconds(120)), seconds(5));
    assert_eq!(
        attempts.next_delay(RetryDelay::Short, began + seconds(130), seconds(120)),
        None,
        "no time is left for a request"
    );
}

#[test]
fn patience_begins_where_the_model_first_failed() {
    let (began, seconds) = (Instant::now(), Duration::from_secs);
    let mut attempts = Attempts::new(patience(seconds(60)), seconds(3600), began);
    // A request that hung for longer than the patience is asked again all the same.
    let failed = began + seconds(120);
    assert_eq!(attempts.next_delay(RetryDelay::RetryAfter(seconds(3600)), failed, Duration::ZERO), Some(seconds(60)));
    assert_eq!(attempts.next_delay(RetryDelay::Short, failed + seconds(60), seconds(60)), None);
}
