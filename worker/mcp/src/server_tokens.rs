//! The token with which a worker authenticates to a server that the operator runs.
//!
//! The token comes in the operator's answers to reports, and is renewed there. So the client waits for the first one before it begins a
//! session, and sends nothing once the last one has expired.

use bloomery_crds::report::ServerToken;
use bloomery_redact::Redactor;
use reqwest::header::HeaderValue;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::{Instant, timeout_at};

/// The time by which a token is given up before its end, for the way of the request.
const MARGIN: Duration = Duration::from_secs(5);

/// The latest token. Clones share it.
#[derive(Debug, Clone)]
pub struct ServerTokens {
    latest: Arc<watch::Sender<Option<Held>>>,
    redactor: Redactor,
    /// Whether the server may answer without a token.
    is_optional: bool,
}

/// A token, and the time until which it is sent.
#[derive(Debug, Clone, PartialEq)]
struct Held {
    /// Its debug output does not show the value.
    header: HeaderValue,
    until: Instant,
}

impl ServerTokens {
    /// How long a token is waited for that the server may not need: an operator of an earlier version sends none.
    pub const OPTIONAL_WAIT: Duration = Duration::from_secs(5);

    /// Creates a holder without a token. `redactor` keeps the tokens out of all output.
    pub fn new(redactor: Redactor) -> Self {
        Self { latest: Arc::default(), redactor, is_optional: false }
    }

    /// Sends requests without a token if there is none: only the server knows whether it needs one.
    #[must_use]
    pub fn optional(self) -> Self {
        Self { is_optional: true, ..self }
    }

    /// Returns whether the server may answer without a token.
    pub(crate) fn is_optional(&self) -> bool {
        self.is_optional
    }

    /// Replaces the token.
    pub fn set(&self, token: &ServerToken) {
        let Ok(mut header) = HeaderValue::from_str(&format!("Bearer {}", token.token)) else { return };
        header.set_sensitive(true);
        if self.latest.borrow().as_ref().is_none_or(|held| held.header != header) {
            // Without its signature, a token is worth nothing. The other parts are no secret.
            let signature = token.token.rsplit('.').next().unwrap_or_default();
            self.redactor.learn("server token", signature.as_bytes());
        }
        let until = Instant::now() + Duration::from_secs(token.valid_seconds).saturating_sub(MARGIN);
        self.latest.send_replace(Some(Held { header, until }));
    }

    /// Waits until there is a valid token, at the longest until `until`.
    pub(crate) async fn wait(&self, until: Instant) {
        let optional_until = Instant::now() + Self::OPTIONAL_WAIT;
        let until = if self.is_optional { until.min(optional_until) } else { until };
        let mut latest = self.latest.subscribe();
        let is_valid = |held: &Option<Held>| held.as_ref().is_some_and(|held| held.until > Instant::now());
        // After the timeout, the next request says what is missing.
        let _ = timeout_at(until, latest.wait_for(is_valid)).await;
    }

    /// Returns the header of the next request, if it has one. An error is a clause about the server.
    pub(crate) fn header(&self) -> Result<Option<HeaderValue>, String> {
        match &*self.latest.borrow() {
            Some(held) if held.until > Instant::now() => Ok(Some(held.header.clone())),
            _ if self.is_optional => Ok(None),
            Some(_) => Err("the worker's token for it has expired, and the operator has not renewed it yet".to_owned()),
            None => Err("the operator has not sent the worker's token for it yet".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "eyJhbGciOiJFZERTQSJ9.eyJpYXQiOjF9.c2lnbmF0dXJlLW9mLXRoZS10b2tlbg";

    fn token(text: &str, valid_seconds: u64) -> ServerToken {
        ServerToken { token: text.to_owned(), valid_seconds }
    }

    #[tokio::test]
    async fn a_token_is_waited_for_and_sent_until_its_end() {
        let tokens = ServerTokens::new(Redactor::default());
        assert!(tokens.header().unwrap_err().contains("has not sent"));
        let until = Instant::now() + Duration::from_mins(1);
        tokio::join!(tokens.wait(until), async { tokens.set(&token(FIRST, 600)) });
        assert_eq!(tokens.header().unwrap().unwrap(), format!("Bearer {FIRST}").as_str());
        tokens.set(&token(FIRST, MARGIN.as_secs()));
        assert!(tokens.header().unwrap_err().contains("has expired"));
    }

    #[tokio::test]
    async fn the_wait_for_a_token_ends() {
        let tokens = ServerTokens::new(Redactor::default());
        tokens.wait(Instant::now()).await;
        tokens.set(&token(FIRST, 0));
        tokens.wait(Instant::now()).await;
        assert!(tokens.header().is_err());
    }

    #[tokio::test]
    async fn an_optional_token_is_omitted_if_there_is_none() {
        let tokens = ServerTokens::new(Redactor::default());
        let optional = tokens.clone().optional();
        optional.wait(Instant::now()).await;
        assert_eq!(optional.header(), Ok(None));
        tokens.set(&token(FIRST, 600));
        assert!(optional.header().unwrap().is_some());
    }

    #[test]
    fn a_token_is_redacted_and_not_in_debug_output() {
        let redactor = Redactor::default();
        let tokens = ServerTokens::new(redactor.clone());
        tokens.set(&token(FIRST, 600));
        let shown = redactor.redact_text(&format!("it refused {FIRST}")).into_owned();
        assert!(shown.ends_with(".[redacted: server token]"), "{shown}");
        assert!(!format!("{tokens:?}").contains("c2lnbmF0dXJlL"));
    }
}
