//! Tokens that the API server has vouched for, for a minute.

use super::Caller;
use bloomery_crds::Digest;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a token is believed after it was checked: a pod that is deleted may report that much longer.
const BELIEVED: Duration = Duration::from_mins(1);

/// How many tokens are remembered; what is forgotten is only asked for again.
const REMEMBERED: usize = 8192;

/// Callers by the digest of their token.
#[derive(Debug, Default)]
pub(super) struct Remembered(Mutex<HashMap<Digest, (Instant, Caller)>>);

impl Remembered {
    /// The caller of a token that was checked within the last minute.
    pub(super) fn get(&self, token: &Digest, now: Instant) -> Option<Caller> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (asked, caller) = known.get(token)?;
        (now.saturating_duration_since(*asked) < BELIEVED).then(|| caller.clone())
    }

    /// Remembers a caller, as of when the API server was asked.
    pub(super) fn put(&self, token: Digest, caller: Caller, asked: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= REMEMBERED {
            known.retain(|_, (then, _)| asked.saturating_duration_since(*then) < BELIEVED);
        }
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(token, (asked, caller));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(pod_uid: &str) -> Caller {
        Caller { namespace: "acme".into(), pod_uid: pod_uid.into() }
    }

    #[test]
    fn a_token_is_believed_for_a_minute_and_no_longer() {
        let (known, start, token) = (Remembered::default(), Instant::now(), Digest::of_bytes(b"token"));
        known.put(token.clone(), caller("a"), start);
        assert_eq!(known.get(&token, start + Duration::from_secs(59)), Some(caller("a")));
        assert_eq!(known.get(&token, start + BELIEVED), None);
        assert_eq!(known.get(&Digest::of_bytes(b"other"), start), None);
    }

    #[test]
    fn the_number_of_tokens_is_bounded() {
        let (known, start) = (Remembered::default(), Instant::now());
        for token in 0..=REMEMBERED {
            known.put(Digest::of_bytes(&token.to_be_bytes()), caller("a"), start);
        }
        assert_eq!(known.0.lock().unwrap().len(), 1);
    }
}
