//! Limits the reviews of tokens that one address can cause, so that false tokens do not become requests to the API server.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The maximum number of reviews for one address in [`WINDOW`] that do not end with a valid token. The workers of a node may share an
/// address, and the API server refuses the tokens of very new pods.
pub(super) const MAX_UNPROVEN: u32 = 64;

/// The time after which an address may cause [`MAX_UNPROVEN`] reviews again.
const WINDOW: Duration = Duration::from_secs(5);

/// The maximum number of addresses. If it is reached, those whose time is over are forgotten, or else all.
const MAX_ADDRESSES: usize = 8192;

/// The reviews that began lately and have not ended with a valid token.
#[derive(Debug, Default)]
pub(super) struct ReviewLimit(Mutex<HashMap<IpAddr, Unproven>>);

/// The reviews of one address.
#[derive(Debug)]
struct Unproven {
    since: Instant,
    count: u32,
}

impl ReviewLimit {
    /// Counts a review. Returns false if the address has caused too many, so that the token must not be reviewed now.
    pub(super) fn begin(&self, address: IpAddr, now: Instant) -> bool {
        let mut addresses = self.lock();
        if addresses.len() >= MAX_ADDRESSES {
            addresses.retain(|_, unproven| unproven.is_current(now));
        }
        if addresses.len() >= MAX_ADDRESSES {
            addresses.clear();
        }
        let unproven = addresses.entry(address).or_insert(Unproven { since: now, count: 0 });
        if !unproven.is_current(now) {
            *unproven = Unproven { since: now, count: 0 };
        }
        let is_allowed = unproven.count < MAX_UNPROVEN;
        unproven.count += u32::from(is_allowed);
        is_allowed
    }

    /// Does not count a review any more, because it ended with a valid token.
    pub(super) fn prove(&self, address: IpAddr) {
        if let Some(unproven) = self.lock().get_mut(&address) {
            unproven.count = unproven.count.saturating_sub(1);
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Unproven>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Unproven {
    fn is_current(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.since) < WINDOW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_with_too_many_false_tokens_waits_and_others_do_not() {
        let (limit, start) = (ReviewLimit::default(), Instant::now());
        let (one, other) = (IpAddr::from([10, 0, 0, 1]), IpAddr::from([10, 0, 0, 2]));
        for _ in 0..MAX_UNPROVEN {
            assert!(limit.begin(one, start));
        }
        assert!(!limit.begin(one, start + WINDOW / 2));
        assert!(limit.begin(other, start + WINDOW / 2));
        assert!(limit.begin(one, start + WINDOW));
    }

    #[test]
    fn valid_tokens_do_not_count() {
        let (limit, start, address) = (ReviewLimit::default(), Instant::now(), IpAddr::from([10, 0, 0, 1]));
        for _ in 0..=MAX_UNPROVEN {
            assert!(limit.begin(address, start));
            limit.prove(address);
        }
    }

    #[test]
    fn the_number_of_addresses_is_bounded() {
        let (limit, start) = (ReviewLimit::default(), Instant::now());
        for number in 0..=u32::try_from(MAX_ADDRESSES).unwrap() {
            limit.begin(IpAddr::from(number.to_be_bytes()), start);
        }
        assert_eq!(limit.lock().len(), 1);
    }
}
