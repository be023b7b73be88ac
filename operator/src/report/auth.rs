//! Authenticates workers: the API server reviews their projected token, which has the audience `bloomery`.

use super::refusal::Refusal;
use super::review_limit::ReviewLimit;
use super::turns::{Turn, Turns};
use crate::metrics::Metrics;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bloomery_crds::Digest;
use bloomery_crds::names::REPORT_AUDIENCE;
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, TokenReviewStatus};
use kube::api::PostParams;
use kube::{Api, Client};
use serde_json::Value;
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// The maximum number of concurrent reviews, so that a flood of tokens does not become a flood at the API server.
const MAX_CONCURRENT_REVIEWS: usize = 16;

/// The time that a reviewed token is trusted. A deleted pod may still report for this time.
const TOKEN_TRUST_DURATION: Duration = Duration::from_mins(1);

/// The time for which a refused token is refused again without a review. The API server refuses the token of a very new
/// pod until its cache has the pod.
const TOKEN_REFUSAL_DURATION: Duration = Duration::from_secs(5);

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

/// A request with the token of a worker. Until this value is dropped, the worker's pod has no other request.
#[derive(Debug)]
pub(super) struct Admitted {
    /// The worker that sends the request.
    pub(super) caller: Caller,
    _turn: Turn,
}

/// Authenticates reports.
pub struct Authenticator {
    reviews: Api<TokenReview>,
    metrics: Arc<Metrics>,
    permits: Semaphore,
    limit: ReviewLimit,
    turns: Turns,
    callers: TokenCache<Caller>,
    refusals: TokenCache<Refusal>,
}

impl Authenticator {
    /// Creates an authenticator that uses this API server.
    pub fn new(client: Client, metrics: Arc<Metrics>) -> Self {
        let permits = Semaphore::new(MAX_CONCURRENT_REVIEWS);
        Self {
            reviews: Api::all(client),
            metrics,
            permits,
            limit: ReviewLimit::default(),
            turns: Turns::default(),
            callers: TokenCache::new(TOKEN_TRUST_DURATION),
            refusals: TokenCache::new(TOKEN_REFUSAL_DURATION),
        }
    }

    /// Returns the worker that a bearer token belongs to. The API server reviews each token at most once a minute, and only a limited
    /// number of false tokens from the address `peer`.
    async fn caller(&self, token: &str, peer: IpAddr) -> Result<Caller, Refusal> {
        let key = Digest::of_bytes(token.as_bytes());
        let requested = Instant::now();
        if let Some(caller) = self.callers.get(&key, requested) {
            return Ok(caller);
        }
        if let Some(refusal) = self.refusals.get(&key, requested) {
            return Err(refusal);
        }
        if !self.limit.begin(peer, requested) {
            let message = format!("the token is not checked now, because too many of the address {peer} were refused");
            return Err(Refusal::Unavailable(message));
        }
        match identify(&self.review(token).await?) {
            Ok(caller) => {
                self.limit.prove(peer);
                self.callers.put(key, caller.clone(), requested);
                Ok(caller)
            }
            Err(refusal) => {
                self.refusals.put(key, refusal.clone(), requested);
                Err(refusal)
            }
        }
    }

    /// Admits a request with a bearer token from the address `peer`, once the pod has no other request in progress.
    pub(super) async fn admit(&self, token: &str, peer: IpAddr) -> Result<Admitted, Refusal> {
        let caller = self.caller(token, peer).await?;
        let turn = self.turns.begin(&caller.pod_uid).await;
        Ok(Admitted { caller, _turn: turn })
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

/// Refuses a token that cannot be a worker's: one that is no JWT, or whose payload does not name the audience of reports.
///
/// This verifies nothing. It refuses most foreign requests before their body is read.
pub fn check_form(token: &str) -> Result<(), Refusal> {
    let refused = |why: &str| Err(Refusal::Unauthorized(format!("the token is refused: {why}")));
    let parts: Vec<&str> = token.splitn(4, '.').collect();
    let [_, payload, _] = parts.as_slice() else { return refused("it is not a JWT") };
    let payload = URL_SAFE_NO_PAD.decode(payload).ok();
    let Some(claims) = payload.and_then(|payload| serde_json::from_slice::<Value>(&payload).ok()) else {
        return refused("its payload cannot be read");
    };
    let is_audience = |value: &Value| value == REPORT_AUDIENCE;
    match claims.get("aud") {
        Some(Value::Array(audiences)) if audiences.iter().any(is_audience) => Ok(()),
        Some(audience) if is_audience(audience) => Ok(()),
        _ => refused("it was not issued for the audience bloomery"),
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

/// Results of reviews, by the digest of the token.
#[derive(Debug)]
struct TokenCache<T> {
    results: Mutex<HashMap<Digest, (Instant, T)>>,
    /// The time for which a result is valid.
    valid_for: Duration,
}

impl<T: Clone> TokenCache<T> {
    fn new(valid_for: Duration) -> Self {
        Self { results: Mutex::default(), valid_for }
    }

    /// Returns the result of a review, if it is still valid.
    fn get(&self, token: &Digest, now: Instant) -> Option<T> {
        let results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let (requested, result) = results.get(token)?;
        (now.saturating_duration_since(*requested) < self.valid_for).then(|| result.clone())
    }

    /// Caches the result of a review. It is valid from the time of the request on.
    fn put(&self, token: Digest, result: T, requested: Instant) {
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        if results.len() >= MAX_TOKENS {
            results
                .retain(|_, (requested_then, _)| requested.saturating_duration_since(*requested_then) < self.valid_for);
        }
        if results.len() >= MAX_TOKENS {
            results.clear();
        }
        results.insert(token, (requested, result));
    }
}

#[cfg(test)]
mod tests;
