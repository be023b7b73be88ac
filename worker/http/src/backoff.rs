//! Delays between retries.

use backon::{BackoffBuilder, ExponentialBuilder};
use std::time::Duration;

/// Exponential delays between retries, with jitter, without end.
///
/// Each delay is between half and all of a value that starts at `first` and doubles up to `max`. The jitter keeps workers that
/// failed together from retrying together.
#[derive(Debug)]
pub struct Backoff {
    settings: ExponentialBuilder,
    delays: <ExponentialBuilder as BackoffBuilder>::Backoff,
}

impl Backoff {
    /// Creates delays that start at `first` and never exceed `max`.
    pub fn new(first: Duration, max: Duration) -> Self {
        // backon adds a jitter of up to the whole delay.
        let settings = ExponentialBuilder::new()
            .with_min_delay(first.min(max) / 2)
            .with_max_delay(max / 2)
            .without_max_times()
            .with_jitter();
        Self { settings, delays: settings.build() }
    }

    /// Returns the delay before the next retry.
    pub fn next_delay(&mut self) -> Duration {
        // Without a maximum of retries, there is always a next delay.
        self.delays.next().unwrap_or_default()
    }

    /// Starts again at the first delay, after a success.
    pub fn reset(&mut self) {
        self.delays = self.settings.build();
    }
}

impl Clone for Backoff {
    /// Returns delays with the same settings, starting at the first.
    fn clone(&self) -> Self {
        Self { settings: self.settings, delays: self.settings.build() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_the_maximum_and_start_again() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(350));
        for whole in [100, 200, 350, 350] {
            let delay = backoff.next_delay();
            assert!(delay >= Duration::from_millis(whole / 2) && delay <= Duration::from_millis(whole), "{delay:?}");
        }
        backoff.reset();
        assert!(backoff.next_delay() <= Duration::from_millis(100));
    }
}
