use super::*;
use crate::fixture::retry_policy;

#[test]
fn pauses_do_not_count_as_time_for_requests() {
    let (began, seconds) = (Instant::now(), Duration::from_secs);
    let mut tries = Tries::new(retry_policy(seconds(3600)), seconds(10), began);
    // 4 s in a request, then a pause.
    assert_eq!(
        tries.next_delay(RetryDelay::RetryAfter(seconds(60)), began + seconds(4), Duration::ZERO),
        Some(seconds(60))
    );
    assert_eq!(tries.remaining(began + seconds(64), seconds(60)), seconds(6));
    assert_eq!(
        tries.next_delay(RetryDelay::RetryAfter(seconds(60)), began + seconds(65), seconds(60)),
        Some(seconds(60))
    );
    assert_eq!(tries.remaining(began + seconds(125), seconds(120)), seconds(5));
    assert_eq!(
        tries.next_delay(RetryDelay::Short, began + seconds(130), seconds(120)),
        None,
        "no time is left for a request"
    );
}

#[test]
fn the_total_time_begins_with_the_first_failure() {
    let (began, seconds) = (Instant::now(), Duration::from_secs);
    let mut tries = Tries::new(retry_policy(seconds(60)), seconds(3600), began);
    // The first request took longer than the total time and is retried anyway.
    let failed = began + seconds(120);
    assert_eq!(tries.next_delay(RetryDelay::RetryAfter(seconds(3600)), failed, Duration::ZERO), Some(seconds(60)));
    assert_eq!(tries.next_delay(RetryDelay::Short, failed + seconds(60), seconds(60)), None);
}
