//! Limits the requests of each user.

use axum::http::Method;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time in which the bucket of a user gains one token: 100 tokens each second.
const TOKEN_TIME: Duration = Duration::from_millis(10);

/// The time in which an empty bucket becomes full: it holds 2,000 tokens, so that many clients of a user can connect again at once.
const FILL_TIME: Duration = Duration::from_secs(20);

/// The number of tokens of a request that only reads.
const READ_COST: u32 = 1;

/// The number of tokens of a request that starts a Job or sends input: 5 each second, and 100 at once.
const WRITE_COST: u32 = 20;

/// The largest number of users whose buckets are not full.
const MAX_USERS: usize = 10_000;

/// The buckets of tokens of the users, in the memory of this process. Each replica limits for itself.
///
/// A bucket is stored as the time at which it is full again. A full bucket is not stored.
#[derive(Debug, Default)]
pub(crate) struct RateLimits(Mutex<BTreeMap<String, Instant>>);

impl RateLimits {
    /// Takes the tokens of a request from the bucket of its user.
    ///
    /// # Errors
    /// If the bucket has too few tokens: the time after which it has enough. Or if too many users have sent requests lately.
    pub(crate) fn admit(&self, user: &str, method: &Method, now: Instant) -> Result<(), Duration> {
        let cost = if method.is_safe() { READ_COST } else { WRITE_COST };
        let mut full_at = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let before = full_at.get(user).copied().filter(|at| *at > now);
        let after = before.unwrap_or(now) + TOKEN_TIME * cost;
        let missing = after.saturating_duration_since(now).saturating_sub(FILL_TIME);
        if !missing.is_zero() {
            return Err(missing);
        }
        if !full_at.contains_key(user) && full_at.len() >= MAX_USERS {
            full_at.retain(|_, at| *at > now);
            if full_at.len() >= MAX_USERS {
                return Err(TOKEN_TIME);
            }
        }
        full_at.insert(user.to_owned(), after);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_can_send_many_requests_at_once_and_then_waits() {
        let (limits, now) = (RateLimits::default(), Instant::now());
        for nth in 0..100 {
            assert_eq!(limits.admit("ada", &Method::POST, now), Ok(()), "{nth}");
        }
        assert_eq!(limits.admit("ada", &Method::GET, now), Err(TOKEN_TIME));
        assert_eq!(limits.admit("ada", &Method::POST, now), Err(TOKEN_TIME * WRITE_COST));
        // Another user has a bucket of its own.
        assert_eq!(limits.admit("eve", &Method::POST, now), Ok(()));
        let later = now + TOKEN_TIME * WRITE_COST;
        assert_eq!(limits.admit("ada", &Method::POST, later), Ok(()));
        assert_eq!(limits.admit("ada", &Method::GET, later), Err(TOKEN_TIME));
    }

    #[test]
    fn the_number_of_stored_users_is_bounded() {
        let (limits, now) = (RateLimits::default(), Instant::now());
        for nth in 0..MAX_USERS {
            assert_eq!(limits.admit(&format!("u-{nth}"), &Method::GET, now), Ok(()));
        }
        assert_eq!(limits.admit("ada", &Method::GET, now), Err(TOKEN_TIME));
        assert_eq!(limits.admit("u-1", &Method::GET, now), Ok(()));
        assert_eq!(limits.admit("ada", &Method::GET, now + FILL_TIME), Ok(()));
        assert_eq!(limits.0.lock().unwrap().len(), 1);
    }
}
