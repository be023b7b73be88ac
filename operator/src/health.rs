//! Serves health, readiness and metrics over HTTP.

use crate::metrics::Metrics;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The time without progress of one watch after which the kubelet restarts the operator. A watch makes progress when the API
/// server answers it, or when it fails: an API server that cannot be reached is no reason for a restart.
const MAX_WATCH_SILENCE: Duration = Duration::from_mins(5);

/// The time of the last progress of each watch, by the name of the watch. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Liveness(Arc<Mutex<BTreeMap<String, Instant>>>);

impl Liveness {
    /// Records that a watch begins, was answered, or failed.
    pub fn record_watch_progress(&self, watch: &str) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(watch.to_owned(), Instant::now());
    }

    /// Returns the time of the last progress of each watch.
    #[cfg(test)]
    pub(crate) fn last_progress(&self) -> BTreeMap<String, Instant> {
        self.0.lock().unwrap().clone()
    }

    /// Returns the watch that is without progress at `now` for the longest time, and this time, if it is too long.
    fn silence(&self, now: Instant) -> Option<(String, Duration)> {
        let last_progress = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        longest_silence(&last_progress, now).map(|(watch, silence)| (watch.to_owned(), silence))
    }
}

/// Returns the watch that is without progress at `now` for the longest time, and this time, if it is too long. The progress of other
/// watches does not count.
fn longest_silence(last_progress: &BTreeMap<String, Instant>, now: Instant) -> Option<(&str, Duration)> {
    let (watch, last) = last_progress.iter().min_by_key(|(_, last)| **last)?;
    let silence = now.saturating_duration_since(*last);
    (silence > MAX_WATCH_SILENCE).then_some((watch.as_str(), silence))
}

/// The readiness of the parts of this process. Each part sets its own flag.
#[derive(Debug, Clone, Default)]
pub struct Readiness {
    /// All caches were filled once.
    pub caches: ReadyFlag,
    /// The CA of the report endpoint is known.
    pub report_ca: ReadyFlag,
    /// The report endpoint accepts connections.
    pub report_listener: ReadyFlag,
}

/// The readiness of one part.
#[derive(Debug, Clone, Default)]
pub struct ReadyFlag(Arc<AtomicBool>);

impl ReadyFlag {
    /// Marks the part as ready.
    pub fn set(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Marks the part as not ready.
    pub fn clear(&self) {
        self.0.store(false, Ordering::Release);
    }

    /// Returns whether the part is ready.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

impl Readiness {
    /// The names of the parts that are not ready.
    pub fn missing(&self) -> Vec<&'static str> {
        let Self { caches, report_ca, report_listener } = self;
        let parts = [(caches, "the caches"), (report_ca, "the report CA"), (report_listener, "the report listener")];
        parts.into_iter().filter(|(flag, _)| !flag.is_set()).map(|(_, name)| name).collect()
    }
}

/// Serves until the shutdown, then finishes requests in progress.
pub async fn serve(listener: TcpListener, router: Router, shutdown: CancellationToken) -> std::io::Result<()> {
    axum::serve(listener, router).with_graceful_shutdown(shutdown.cancelled_owned()).await
}

/// Routes `/healthz`, `/readyz` and `/metrics`.
pub fn router(liveness: Liveness, readiness: Readiness, metrics: Arc<Metrics>) -> Router {
    Router::new()
        .route("/healthz", get(live).with_state(liveness))
        .route("/readyz", get(ready).with_state(readiness))
        .route("/metrics", get(metrics_text).with_state(metrics))
}

async fn live(State(liveness): State<Liveness>) -> (StatusCode, String) {
    match liveness.silence(Instant::now()) {
        None => (StatusCode::OK, "ok".to_owned()),
        Some((watch, silence)) => {
            let seconds = silence.as_secs();
            let message = format!("the watch of {watch} was not answered and did not fail for {seconds} s");
            (StatusCode::SERVICE_UNAVAILABLE, message)
        }
    }
}

async fn ready(State(readiness): State<Readiness>) -> (StatusCode, String) {
    let missing = readiness.missing();
    if missing.is_empty() {
        return (StatusCode::OK, "ok".to_owned());
    }
    (StatusCode::SERVICE_UNAVAILABLE, format!("waiting for {}", missing.join(", ")))
}

async fn metrics_text(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], metrics.to_text())
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::{Body, to_bytes};
    use axum::http::Request;
    use tower::ServiceExt;

    async fn fetch(router: &Router, path: &str) -> (StatusCode, String) {
        let request = Request::get(path).body(Body::empty()).unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let body = to_bytes(response.into_body(), 1 << 20).await.unwrap();
        (status, String::from_utf8(body.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn readiness_names_the_parts_that_are_not_ready() {
        let readiness = Readiness::default();
        let router = router(Liveness::default(), readiness.clone(), Arc::new(Metrics::new()));
        assert_eq!(fetch(&router, "/healthz").await.0, StatusCode::OK);
        readiness.caches.set();
        readiness.report_ca.set();
        let (status, body) = fetch(&router, "/readyz").await;
        assert_eq!((status, body.as_str()), (StatusCode::SERVICE_UNAVAILABLE, "waiting for the report listener"));
        readiness.report_listener.set();
        assert_eq!(fetch(&router, "/readyz").await, (StatusCode::OK, "ok".to_owned()));
        readiness.report_ca.clear();
        assert_eq!(fetch(&router, "/readyz").await.0, StatusCode::SERVICE_UNAVAILABLE);
    }

    #[test]
    fn one_watch_without_progress_ends_the_liveness_while_the_others_live() {
        let now = Instant::now();
        let later = now + MAX_WATCH_SILENCE + Duration::from_mins(1);
        let watches = |times: [Instant; 3]| -> BTreeMap<String, Instant> {
            ["models", "pods", "skills"].map(str::to_owned).into_iter().zip(times).collect()
        };
        assert_eq!(longest_silence(&BTreeMap::new(), later), None);
        assert_eq!(longest_silence(&watches([now; 3]), now + MAX_WATCH_SILENCE), None);
        let one_is_dead = watches([later, now, later]);
        assert_eq!(longest_silence(&one_is_dead, later), Some(("pods", MAX_WATCH_SILENCE + Duration::from_mins(1))));
        let two_are_dead = watches([now + Duration::from_secs(1), now, later]);
        assert_eq!(
            longest_silence(&two_are_dead, later).map(|(watch, _)| watch),
            Some("pods"),
            "it is silent for longer"
        );
        assert_eq!(longest_silence(&watches([later; 3]), later), None);
    }

    #[tokio::test]
    async fn the_liveness_names_the_watch_without_progress() {
        let liveness = Liveness::default();
        let router = router(liveness.clone(), Readiness::default(), Arc::new(Metrics::new()));
        for watch in ["models", "pods", "skills"] {
            liveness.record_watch_progress(watch);
        }
        assert_eq!(fetch(&router, "/healthz").await, (StatusCode::OK, "ok".to_owned()));
        let dead_since = Instant::now().checked_sub(MAX_WATCH_SILENCE + Duration::from_mins(1)).unwrap();
        liveness.0.lock().unwrap().insert("pods".to_owned(), dead_since);
        liveness.record_watch_progress("skills");
        let (status, body) = fetch(&router, "/healthz").await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
        assert!(body.starts_with("the watch of pods was not answered and did not fail for "), "{body}");
        liveness.record_watch_progress("pods");
        assert_eq!(fetch(&router, "/healthz").await.0, StatusCode::OK);
    }

    #[tokio::test]
    async fn metrics_are_served_in_the_open_metrics_format() {
        let (status, body) =
            fetch(&router(Liveness::default(), Readiness::default(), Arc::new(Metrics::new())), "/metrics").await;
        assert_eq!(status, StatusCode::OK);
        assert!(body.ends_with("# EOF\n"), "{body}");
    }
}
