//! Reviews of bearer tokens by the API server, which are kept for a short time.

use crate::problem::Problem;
use axum::http::StatusCode;
use bloomery_crds::Digest;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec};
use kube::api::PostParams;
use kube::{Api, Client};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// The time that a reviewed token is trusted. The API server authenticates each operation again.
const TRUST_DURATION: Duration = Duration::from_mins(1);

/// The time for which a refused token is refused again without a review.
const REFUSAL_DURATION: Duration = Duration::from_secs(5);

/// The maximum number of kept results. A token without one is reviewed again.
const MAX_TOKENS: usize = 8192;

/// The reviewed tokens.
pub(super) struct Reviews {
    api: Api<TokenReview>,
    /// By the digest of the token: the end of its time, and the name of its user; none if the token is refused.
    results: Mutex<BTreeMap<Digest, (Instant, Option<String>)>>,
}

impl Reviews {
    /// Creates the reviews without results.
    pub(super) fn new(client: Client) -> Self {
        Self { api: Api::all(client), results: Mutex::default() }
    }

    /// Returns the name of the user of a token.
    ///
    /// # Errors
    /// If the API server refuses the token, or cannot review it.
    pub(super) async fn user(&self, token: &str) -> Result<String, Problem> {
        let key = Digest::of_bytes(token.as_bytes());
        let now = Instant::now();
        let user = if let Some((_, user)) = self.kept(&key, now) {
            user
        } else {
            let user = self.review(token).await?;
            self.keep(key, user.clone(), now);
            user
        };
        user.ok_or_else(|| {
            Problem::new(StatusCode::UNAUTHORIZED, "The API server of the cluster does not accept the bearer token.")
        })
    }

    fn kept(&self, key: &Digest, now: Instant) -> Option<(Instant, Option<String>)> {
        let results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        results.get(key).filter(|(end, _)| now < *end).cloned()
    }

    fn keep(&self, key: Digest, user: Option<String>, now: Instant) {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        if results.len() >= MAX_TOKENS {
            results.retain(|_, (end, _)| now < *end);
        }
        if results.len() >= MAX_TOKENS {
            results.clear();
        }
        let valid_for = if user.is_some() { TRUST_DURATION } else { REFUSAL_DURATION };
        results.insert(key, (now + valid_for, user));
    }

    /// Returns the name of the user of a token, or none if the API server refuses the token.
    async fn review(&self, token: &str) -> Result<Option<String>, Problem> {
        let spec = TokenReviewSpec { token: Some(token.to_owned()), audiences: None };
        let created = self.api.create(&PostParams::default(), &TokenReview { spec, ..TokenReview::default() }).await;
        let reviewed = created.map_err(|error| {
            tracing::warn!(%error, "a token cannot be reviewed");
            let detail = "The API server of the cluster cannot review the bearer token now: try again later.";
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail)
        })?;
        let status = reviewed.status.unwrap_or_default();
        Ok(status.user.filter(|_| status.authenticated == Some(true)).and_then(|user| user.username))
    }
}
