//! Pauses between tries, longer each time, with jitter.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::Duration;

/// The pauses between tries of one thing: doubled each time up to a cap, each between half and all of it, so
/// that workers which failed together do not come back together.
#[derive(Debug, Clone)]
pub struct Backoff {
    first: Duration,
    cap: Duration,
    next: Duration,
}

impl Backoff {
    /// Starts with `first`, never pauses longer than `cap`.
    pub fn new(first: Duration, cap: Duration) -> Self {
        Self { first, cap, next: first.min(cap) }
    }

    /// How long to pause now.
    pub fn pause(&mut self) -> Duration {
        let whole = self.next;
        self.next = whole.saturating_mul(2).min(self.cap);
        let half = whole / 2;
        half + Self::part(whole.saturating_sub(half))
    }

    /// Begins again after a success.
    pub fn reset(&mut self) {
        self.next = self.first.min(self.cap);
    }

    // Every `RandomState` is keyed differently, which is all the randomness that jitter needs.
    fn part(of: Duration) -> Duration {
        let random = RandomState::new().hash_one(());
        of.mul_f64(f64::from(u32::try_from(random >> 32).unwrap_or(0)) / f64::from(u32::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_the_cap_and_begin_again() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_millis(350));
        for whole in [100, 200, 350, 350] {
            let pause = backoff.pause();
            assert!(pause >= Duration::from_millis(whole / 2) && pause <= Duration::from_millis(whole), "{pause:?}");
        }
        backoff.reset();
        assert!(backoff.pause() <= Duration::from_millis(100));
    }
}
