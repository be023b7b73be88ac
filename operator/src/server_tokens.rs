//! The tokens with which workers authenticate to the MCP servers that the operator runs.
//!
//! Two keys are in use: the current one signs, and the next one will. Each server accepts the tokens of both, so it still accepts tokens
//! after the current key is replaced by the next one, until its pods are replaced too.

use bloomery_crds::report::ServerToken;
use bloomery_token::{CLOCK_SKEW_SECONDS, Claims, PublicKey, SigningKey, Subject};
use k8s_openapi::jiff::Timestamp;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};

/// Signs tokens. Clones share the keys.
#[derive(Debug, Clone, Default)]
pub struct ServerTokens(Arc<RwLock<Option<Keys>>>);

/// The keys in use.
#[derive(Debug)]
pub struct Keys {
    /// Signs tokens.
    pub current: SigningKey,
    /// Signs tokens after the current one is deleted.
    pub next: SigningKey,
}

impl ServerTokens {
    /// Sets the keys.
    pub fn set_keys(&self, keys: Keys) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(keys);
    }

    /// Returns the public keys that servers accept; none before the keys are known.
    pub fn public_keys(&self) -> Option<[PublicKey; 2]> {
        self.keys().as_ref().map(|Keys { current, next }| [current.public(), next.public()])
    }

    /// Returns the token of a caller at `now`; none before the keys are known.
    pub fn issue(&self, subject: Subject<'_>, now: Timestamp) -> Option<ServerToken> {
        let now = u64::try_from(now.as_second()).ok()?;
        let claims = Claims::new(subject, now);
        let token = self.keys().as_ref()?.current.sign(&claims).ok()?;
        // The clock of the server may be ahead.
        let valid_seconds = claims.exp.saturating_sub(now).saturating_sub(CLOCK_SKEW_SECONDS);
        Some(ServerToken { token, valid_seconds })
    }

    fn keys(&self) -> RwLockReadGuard<'_, Option<Keys>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Keys for tests.
#[cfg(test)]
pub(crate) fn test_keys() -> Keys {
    let [current, next] = [1, 2].map(|seed| SigningKey::from_seed(&[seed; 32]).unwrap());
    Keys { current, next }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_token::{LIFETIME_SECONDS, RENEWAL_SECONDS, Verifier, audience};

    const SUBJECT: Subject<'_> = Subject { namespace: "acme", skill: "orders", job: Some("refund"), uid: "u" };

    fn at(second: u64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + i64::try_from(second).unwrap()).unwrap()
    }

    #[test]
    fn servers_with_the_public_keys_accept_tokens_before_and_after_the_next_key_becomes_the_current_one() {
        let tokens = ServerTokens::default();
        assert_eq!((tokens.public_keys(), tokens.issue(SUBJECT, at(0))), (None, None));
        tokens.set_keys(test_keys());
        let server = Verifier::new(&tokens.public_keys().unwrap(), audience("acme", "orders"));
        let before = tokens.issue(SUBJECT, at(0)).unwrap();
        let Keys { next, .. } = test_keys();
        tokens.set_keys(Keys { current: next, next: SigningKey::from_seed(&[3; 32]).unwrap() });
        let after = tokens.issue(SUBJECT, at(0)).unwrap();
        assert_ne!(before.token, after.token);
        for token in [before, after] {
            assert_eq!(server.verify(&token.token, 1_800_000_000).unwrap().sub, "u");
        }
    }

    #[test]
    fn replicas_issue_the_same_token_and_it_is_renewed_long_before_its_end() {
        let issue = |second| {
            let tokens = ServerTokens::default();
            tokens.set_keys(test_keys());
            tokens.issue(SUBJECT, at(second)).unwrap()
        };
        assert_eq!(issue(0).token, issue(RENEWAL_SECONDS - 1).token);
        assert_ne!(issue(0).token, issue(RENEWAL_SECONDS).token);
        assert_eq!(issue(0).valid_seconds, LIFETIME_SECONDS - CLOCK_SKEW_SECONDS);
        assert!(issue(RENEWAL_SECONDS - 1).valid_seconds > 3 * 60);
    }
}
