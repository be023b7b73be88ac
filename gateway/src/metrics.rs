//! Health, readiness and metrics.

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::registry::Registry;
use std::future::ready;
use std::sync::Arc;

/// The series of the gateway.
pub(crate) struct Metrics {
    registry: Registry,
    responses: Family<[(&'static str, String); 1], Counter>,
}

impl Metrics {
    /// Creates the series.
    pub(crate) fn new() -> Self {
        let (mut registry, responses) = (Registry::default(), Family::default());
        registry.register("bloomery_gateway_responses", "Responses by status", Family::clone(&responses));
        Self { registry, responses }
    }
}

/// Counts the response to a request.
pub(crate) async fn count(State(metrics): State<Arc<Metrics>>, request: Request, next: Next) -> Response {
    let response = next.run(request).await;
    metrics.responses.get_or_create(&[("status", response.status().as_str().to_owned())]).inc();
    response
}

/// Routes `/healthz`, `/readyz` and `/metrics`. The gateway owns no state, so it is ready as soon as it listens.
pub(crate) fn router(metrics: Arc<Metrics>) -> Router {
    Router::new()
        .route("/healthz", get(|| ready("ok")))
        .route("/readyz", get(|| ready("ok")))
        .route("/metrics", get(text).with_state(metrics))
}

async fn text(State(metrics): State<Arc<Metrics>>) -> Response {
    let mut text = String::new();
    match encode(&mut text, &metrics.registry) {
        Ok(()) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], text).into_response()
        }
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::{Body, to_bytes};
    use axum::middleware::from_fn_with_state;
    use tower::ServiceExt;

    #[tokio::test]
    async fn responses_are_counted_by_status() {
        let metrics = Arc::new(Metrics::new());
        let served = Router::new().route("/", get(|| ready("ok")));
        let served = served.layer(from_fn_with_state(Arc::clone(&metrics), count));
        for path in ["/", "/", "/x"] {
            served.clone().oneshot(axum::http::Request::get(path).body(Body::empty()).unwrap()).await.unwrap();
        }
        let request = axum::http::Request::get("/metrics").body(Body::empty()).unwrap();
        let response = router(metrics).oneshot(request).await.unwrap();
        let text = String::from_utf8(to_bytes(response.into_body(), 1 << 20).await.unwrap().to_vec()).unwrap();
        for series in [r#"responses_total{status="200"} 2"#, r#"responses_total{status="404"} 1"#] {
            assert!(text.contains(series), "{text}");
        }
    }
}
