//! Authenticates workers: the API server reviews their projected token, which has the audience `bloomery`.

use super::refusal::Refusal;
use crate::metrics::Metrics;
use bloomery_crds::Digest;
use bloomery_crds::names::REPORT_AUDIENCE;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, TokenReviewStatus};
use kube::api::PostParams;
use kube::{Api, Client};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// The maximum number of concurrent reviews, so that a flood of tokens does not become a flood at the API server.
const MAX_CONCURRENT_REVIEWS: usize = 16;

/// The time that a reviewed token is trusted. A deleted pod may still report for this time.
const TOKEN_TRUST_DURATION: Duration = Duration::from_mins(1);

/// The maximum number of cached tokens. A token that is not cached is reviewed again.
const MAX_TOKENS: usize = 8192;

/// The claim of a projected token that names its pod.
const POD_UID_CLAIM: &str = "authentication.kubernetes.io/pod-uid";

/// The worker that a token belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The namespace of the worker's ServiceAccount and pod.
    pub namespace: String,
    /// The UID of the worker's pod.
    pub pod_uid: String,
}

/// Authenticates reports.
pub struct Authenticator {
    reviews: Api<TokenReview>,
    metrics: Arc<Metrics>,
    permits: Semaphore,
    tokens: TokenCache,
}

impl Authenticator {
    /// Creates an authenticator that uses this API server.
    pub fn new(client: Client, metrics: Arc<Metrics>) -> Self {
        let permits = Semaphore::new(MAX_CONCURRENT_REVIEWS);
        Self { reviews: Api::all(client), metrics, permits, tokens: TokenCache::default() }
    }

    /// Returns the worker that a bearer token belongs to. The API server reviews each token at most once a minute.
    pub async fn caller(&self, token: &str) -> Result<Caller, Refusal> {
        let key = Digest::of_bytes(token.as_bytes());
        if let Some(caller) = self.tokens.get(&key, Instant::now()) {
            return Ok(caller);
        }
        let requested = Instant::now();
        let caller = identify(&self.review(token).await?)?;
        self.tokens.put(key, caller.clone(), requested);
        Ok(caller)
    }

    async fn review(&self, token: &str) -> Result<TokenReviewStatus, Refusal> {
        let spec = TokenReviewSpec { token: Some(token.to_owned()), audiences: Some(vec![REPORT_AUDIENCE.to_owned()]) };
        let unavailable = |why: String| Refusal::Unavailable(format!("the token cannot be checked now: {why}"));
        let _permit = self.permits.acquire().await.map_err(|closed| unavailable(closed.to_string()))?;
        self.metrics.count_write("TokenReview", "create");
        let review = TokenReview { spec, ..TokenReview::default() };
        let created = self.reviews.create(&PostParams::default(), &review).await;
        let reviewed = created.map_err(|error| unavailable(error.to_string()))?;
        reviewed.status.ok_or_else(|| unavailable("the API server returned no result".to_owned()))
    }
}

/// Returns the worker of a reviewed token, if the token was issued for reports.
pub fn identify(review: &TokenReviewStatus) -> Result<Caller, Refusal> {
    let refused = |why: &str| Refusal::Unauthorized(format!("the token is refused: {why}"));
    if review.authenticated != Some(true) {
        return Err(refused(review.error.as_deref().unwrap_or("it is not valid, or expired")));
    }
    // An API server that does not support audiences returns none. Then the token may have been issued for another purpose.
    if !review.audiences.iter().flatten().any(|audience| audience == REPORT_AUDIENCE) {
        return Err(refused("it was not issued for the audience bloomery"));
    }
    let user = review.user.as_ref().ok_or_else(|| refused("it has no user"))?;
    let name = user.username.as_deref().unwrap_or_default();
    let account = name.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':'));
    let (namespace, _) = account.ok_or_else(|| refused("it does not belong to a ServiceAccount"))?;
    let pod_uid = user.extra.as_ref().and_then(|extra| extra.get(POD_UID_CLAIM)?.first().cloned());
    let pod_uid = pod_uid.ok_or_else(|| refused("it is not bound to a pod"))?;
    Ok(Caller { namespace: namespace.to_owned(), pod_uid })
}

/// Cached workers, by the digest of their token.
#[derive(Debug, Default)]
struct TokenCache(Mutex<HashMap<Digest, (Instant, Caller)>>);

impl TokenCache {
    /// Returns the worker of a token that was reviewed within the last minute.
    fn get(&self, token: &Digest, now: Instant) -> Option<Caller> {
        let cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (requested, caller) = cached.get(token)?;
        (now.saturating_duration_since(*requested) < TOKEN_TRUST_DURATION).then(|| caller.clone())
    }

    /// Caches a worker. The cached token is trusted from the time of the review request on.
    fn put(&self, token: Digest, caller: Caller, requested: Instant) {
        let mut cached = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if cached.len() >= MAX_TOKENS {
            cached.retain(|_, (requested_then, _)| {
                requested.saturating_duration_since(*requested_then) < TOKEN_TRUST_DURATION
            });
        }
        if cached.len() >= MAX_TOKENS {
            cached.clear();
        }
        cached.insert(token, (requested, caller));
    }
}

#[cfg(test)]
mod tests;
