//! What tests ask the server, and tell it: everything below `/control`, and `/healthz`.

use std::collections::BTreeMap;

use axum::extract::{Path, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use bloomery_crds::v1alpha1::Stage;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::check::Violation;
use super::desk::Desk;

/// Answer of `GET /control/violations`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Violations {
    /// How many there were.
    pub total: u64,
    /// The first of them, bounded.
    pub violations: Vec<Violation>,
}

/// Answer of `GET /control/requests`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Requests {
    /// All completion requests with the right key, the refused ones too.
    pub total: u64,
    /// By their `user` field; a worker sends the Job's UID.
    pub users: BTreeMap<String, UserRequests>,
}

/// The requests of one conversation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserRequests {
    /// All requests of the main loop.
    pub requests: u64,
    /// How many of them got the scripted answer.
    pub answered: u64,
    /// How many different turns were asked for.
    pub positions: usize,
    /// How often each turn was asked for.
    pub by_position: BTreeMap<usize, u64>,
    /// How often each of the other stages asked.
    #[serde(default)]
    pub by_stage: BTreeMap<Stage, u64>,
}

/// One request that waits at a hold.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Held {
    /// The hold's name in the script.
    pub name: String,
    /// Whose request it is.
    pub user: String,
    /// The stage that asks.
    #[serde(default)]
    pub stage: Stage,
    /// The turn that it asks for.
    pub turn: usize,
}

pub(super) fn router(desk: Desk) -> Router {
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/control/violations", get(violations))
        .route("/control/requests", get(requests))
        .route("/control/held", get(held))
        .route("/control/release/{name}", post(release))
        .with_state(desk)
}

async fn violations(State(desk): State<Desk>) -> Json<Violations> {
    Json(desk.violations())
}

async fn requests(State(desk): State<Desk>) -> Json<Requests> {
    Json(desk.requests())
}

async fn held(State(desk): State<Desk>) -> Json<Value> {
    Json(json!({ "held": desk.held() }))
}

async fn release(State(desk): State<Desk>, Path(name): Path<String>) -> Json<Value> {
    tracing::info!(name, "hold released");
    let waiting = desk.release(name.clone());
    Json(json!({ "released": name, "waiting": waiting }))
}
