//! Serves health, readiness and metrics over HTTP.

use crate::metrics::Metrics;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

/// The time without progress of any watch after which the kubelet restarts the operator. A watch makes progress when the API
/// server answers it, or when it fails: an API server that cannot be reached is no reason for a restart.
const MAX_WATCH_SILENCE: Duration = Duration::from_mins(5);

/// The time of the last progress of a watch.
#[derive(Debug, Clone)]
pub struct Liveness(Arc<Mutex<Instant>>);

impl Default for Liveness {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Instant::now())))
    }
}

impl Liveness {
    /// Records that a watch was answered, or failed.
    pub fn record_watch_progress(&self) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Returns the time of the last progress.
    #[cfg(test)]
    pub(crate) fn last_progress(&self) -> Instant {
        *self.0.lock().unwrap()
    }

    /// Returns the time since the last progress at `now`, if it is too long.
    fn silence(&self, now: Instant) -> Option<Duration> {
        let last = *self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Some(now.saturating_duration_since(last)).filter(|silence| *silence > MAX_WATCH_SILENCE)
    }
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
        Some(silence) => {
            let message = format!("no watch of the API server was answered or failed for {} s", silence.as_secs());
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
    fn watches_without_progress_end_the_liveness() {
        let now = Instant::now();
        let liveness = Liveness(Arc::new(Mutex::new(now)));
        assert_eq!(liveness.silence(now + MAX_WATCH_SILENCE), None);
        let later = now + MAX_WATCH_SILENCE + Duration::from_mins(1);
        assert!(liveness.silence(later).is_some());
        *liveness.0.lock().unwrap() = later;
        assert_eq!(liveness.silence(later), None);
    }

    #[tokio::test]
    async fn metrics_are_served_in_the_open_metrics_format() {
        let (status, body) =
            fetch(&router(Liveness::default(), Readiness::default(), Arc::new(Metrics::new())), "/metrics").await;
        assert_eq!(status, StatusCode::OK);
        assert!(body.ends_with("# EOF\n"), "{body}");
    }
}
