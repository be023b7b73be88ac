//! The HTTP routes for tests, below `/control`, and `/healthz`.

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};

use super::records::Requests;
use super::state::ServerState;
use super::violation::Violations;

pub(super) fn router(state: ServerState) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/control/violations", get(violations))
        .route("/control/requests", get(requests))
        .route("/control/held", get(held))
        .route("/control/release/{name}", post(release))
        .with_state(state)
}

async fn violations(State(state): State<ServerState>) -> Json<Violations> {
    Json(state.violations())
}

async fn requests(State(state): State<ServerState>) -> Json<Requests> {
    Json(state.requests())
}

async fn held(State(state): State<ServerState>) -> Json<Value> {
    Json(json!({ "held": state.held() }))
}

async fn release(State(state): State<ServerState>, Path(name): Path<String>) -> Json<Value> {
    tracing::info!(name, "hold released");
    let waiting = state.release(name.clone());
    Json(json!({ "released": name, "waiting": waiting }))
}
