//! The time and the delays of retries.

use crate::request_error::RetryDelay;
use bloomery_http::Backoff;
use std::time::Duration;
use tokio::time::Instant;

/// The time for retries, and the delays between them.
#[derive(Debug, Clone)]
pub struct RetryPolicy {
    /// The time for retries, counted from the first failure. A request that is running when the time ends is not cancelled.
    pub total: Duration,
    /// The delays after failures that disappear by themselves: rate limits, overload, a lost connection.
    pub short_delays: Backoff,
    /// The delays after failures that a person has to fix: a key, a model's name, an address.
    pub long_delays: Backoff,
    /// The delays while a key does not exist. They are short, because such a try only reads a file.
    pub secret_delays: Backoff,
    /// Whether a request whose key the server does not accept is retried, because a person may correct the key meanwhile.
    pub awaits_corrected_key: bool,
}

impl RetryPolicy {
    /// Creates a policy that retries for `total`, with default delays.
    pub fn new(total: Duration) -> Self {
        let seconds = Duration::from_secs;
        Self {
            total,
            short_delays: Backoff::new(seconds(1), seconds(30)),
            long_delays: Backoff::new(seconds(5), seconds(60)),
            secret_delays: Backoff::new(seconds(1), seconds(5)),
            awaits_corrected_key: true,
        }
    }

    /// Ends a request at once if the server does not accept its key.
    #[must_use]
    pub fn without_key_corrections(self) -> Self {
        Self { awaits_corrected_key: false, ..self }
    }
}

/// Counts the tries of one request, and the time left for them.
pub(crate) struct Tries {
    policy: RetryPolicy,
    /// The time in requests, without the pauses between them.
    within: Duration,
    began: Instant,
    first_failure: Option<Instant>,
    count: u32,
}

impl Tries {
    pub(crate) fn new(policy: RetryPolicy, within: Duration, now: Instant) -> Self {
        Self { policy, within, began: now, first_failure: None, count: 0 }
    }

    /// Returns the time left for requests. `paused` is the total time of the pauses so far.
    pub(crate) fn remaining(&self, now: Instant, paused: Duration) -> Duration {
        self.within.saturating_sub(now.saturating_duration_since(self.began).saturating_sub(paused))
    }

    /// Counts a failed try. Returns the delay before the next try, or `None` if no time is left.
    ///
    /// A delay that would exceed the total time is shortened, so that one more try begins when the total time ends.
    pub(crate) fn next_delay(&mut self, delay: RetryDelay, now: Instant, paused: Duration) -> Option<Duration> {
        self.count += 1;
        let elapsed = now.saturating_duration_since(*self.first_failure.get_or_insert(now));
        let left = self.policy.total.saturating_sub(elapsed);
        let delay = match delay {
            RetryDelay::Short => self.policy.short_delays.next_delay(),
            RetryDelay::Long | RetryDelay::WrongKey => self.policy.long_delays.next_delay(),
            RetryDelay::SecretMissing => self.policy.secret_delays.next_delay(),
            RetryDelay::RetryAfter(delay) => delay.max(self.policy.short_delays.next_delay()),
        };
        (!left.is_zero() && !self.remaining(now, paused).is_zero()).then(|| delay.min(left))
    }
}

impl std::fmt::Display for Tries {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let times = if self.count == 1 { "once".to_owned() } else { format!("{} times", self.count) };
        write!(f, "{times} in {} s", self.began.elapsed().as_secs())
    }
}

#[cfg(test)]
mod tests;
