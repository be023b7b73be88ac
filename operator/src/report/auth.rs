//! Who reports: a projected token of the audience `bloomery`, as the API server sees it.

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

/// How many reviews may be under way: a flood of tokens must not become a flood at the API server.
const MAX_CONCURRENT_REVIEWS: usize = 16;

/// How long a checked token is trusted: a pod that is deleted may report for that much longer.
const TRUST_DURATION: Duration = Duration::from_mins(1);

/// How many tokens are remembered; a forgotten one is checked again.
const MAX_TOKENS: usize = 8192;

/// What a projected token says of the pod that it is bound to.
const POD_UID: &str = "authentication.kubernetes.io/pod-uid";

/// A worker, as its token tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// The namespace of its ServiceAccount, which is its pod's.
    pub namespace: String,
    /// The UID of its pod.
    pub pod_uid: String,
}

/// Finds out who reports.
pub struct Authenticator {
    reviews: Api<TokenReview>,
    metrics: Arc<Metrics>,
    permits: Semaphore,
    tokens: TokenCache,
}

impl Authenticator {
    /// Makes one that asks this API server.
    pub fn new(client: Client, metrics: Arc<Metrics>) -> Self {
        let permits = Semaphore::new(MAX_CONCURRENT_REVIEWS);
        Self { reviews: Api::all(client), metrics, permits, tokens: TokenCache::default() }
    }

    /// The worker that a bearer token belongs to. The API server is asked at most once a minute for each.
    pub async fn caller(&self, token: &str) -> Result<Caller, Refusal> {
        let key = Digest::of_bytes(token.as_bytes());
        if let Some(caller) = self.tokens.get(&key, Instant::now()) {
            return Ok(caller);
        }
        let asked = Instant::now();
        let caller = identify(&self.review(token).await?)?;
        self.tokens.put(key, caller.clone(), asked);
        Ok(caller)
    }

    async fn review(&self, token: &str) -> Result<TokenReviewStatus, Refusal> {
        let spec = TokenReviewSpec { token: Some(token.to_owned()), audiences: Some(vec![REPORT_AUDIENCE.to_owned()]) };
        let unavailable = |why: String| Refusal::Unavailable(format!("the token cannot be checked now: {why}"));
        let _permit = self.permits.acquire().await.map_err(|closed| unavailable(closed.to_string()))?;
        self.metrics.count_write("TokenReview", "create");
        let review = TokenReview { spec, ..TokenReview::default() };
        let answer = self.reviews.create(&PostParams::default(), &review).await;
        let answer = answer.map_err(|error| unavailable(error.to_string()))?;
        answer.status.ok_or_else(|| unavailable("the API server gave no verdict".to_owned()))
    }
}

/// Reads a review: whose token it is, and whether it was made for us.
pub fn identify(review: &TokenReviewStatus) -> Result<Caller, Refusal> {
    let refused = |why: &str| Refusal::Unauthorized(format!("the token is refused: {why}"));
    if review.authenticated != Some(true) {
        return Err(refused(review.error.as_deref().unwrap_or("it is not valid, or expired")));
    }
    // An API server that knows nothing of audiences answers without one: such a token may be anybody's.
    if !review.audiences.iter().flatten().any(|audience| audience == REPORT_AUDIENCE) {
        return Err(refused("it was not made for the audience bloomery"));
    }
    let user = review.user.as_ref().ok_or_else(|| refused("it belongs to nobody"))?;
    let name = user.username.as_deref().unwrap_or_default();
    let account = name.strip_prefix("system:serviceaccount:").and_then(|account| account.split_once(':'));
    let (namespace, _) = account.ok_or_else(|| refused("it does not belong to a ServiceAccount"))?;
    let pod_uid = user.extra.as_ref().and_then(|extra| extra.get(POD_UID)?.first().cloned());
    let pod_uid = pod_uid.ok_or_else(|| refused("it is not bound to a pod"))?;
    Ok(Caller { namespace: namespace.to_owned(), pod_uid })
}

/// Callers by the digest of their token.
#[derive(Debug, Default)]
struct TokenCache(Mutex<HashMap<Digest, (Instant, Caller)>>);

impl TokenCache {
    /// The caller of a token that was checked within the last minute.
    fn get(&self, token: &Digest, now: Instant) -> Option<Caller> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (asked, caller) = known.get(token)?;
        (now.saturating_duration_since(*asked) < TRUST_DURATION).then(|| caller.clone())
    }

    /// Remembers a caller, as of when the API server was asked.
    fn put(&self, token: Digest, caller: Caller, asked: Instant) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_TOKENS {
            known.retain(|_, (then, _)| asked.saturating_duration_since(*then) < TRUST_DURATION);
        }
        if known.len() >= MAX_TOKENS {
            known.clear();
        }
        known.insert(token, (asked, caller));
    }
}

#[cfg(test)]
mod tests;
