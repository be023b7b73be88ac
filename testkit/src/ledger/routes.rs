//! The ledger over HTTP.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::Router;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Json, Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::book::{Book, Summary};
use super::entry::{Effect, Entry, Recorded};
use super::journal::Journal;

/// The address that `GET /elsewhere` redirects to: the metadata service of a cloud.
const METADATA: &str = "http://169.254.169.254/latest";

/// Answer of `GET /effects`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effects {
    /// The effects in the order in which they were recorded.
    pub effects: Vec<Effect>,
}

/// Answer of the endpoints below `/holds`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// True if the order was released. False if the ledger stops before the release.
    pub released: bool,
}

/// The query of the endpoints that list effects.
#[derive(Debug, Deserialize)]
struct Filter {
    tenant: Option<String>,
}

/// The journal and the state derived from it, which change together.
struct Accounts {
    journal: Journal,
    book: Book,
}

#[derive(Clone)]
struct Ledger {
    accounts: Arc<Mutex<Accounts>>,
    /// Notified of every release.
    released: Arc<Notify>,
    stop: CancellationToken,
}

pub(super) fn router(journal: Journal, book: Book, stop: CancellationToken) -> Router {
    let ledger = Ledger { accounts: Arc::new(Mutex::new(Accounts { journal, book })), released: Arc::default(), stop };
    Router::new()
        .route("/healthz", get(async || "ok\n"))
        .route("/elsewhere", get(async || Redirect::temporary(METADATA)))
        .route("/effects", get(effects).post(record))
        .route("/effects/summary", get(summary))
        .route("/holds/{order}", get(wait_for_release))
        .route("/holds/{order}/release", post(release))
        .with_state(ledger)
}

impl Ledger {
    fn accounts(&self) -> MutexGuard<'_, Accounts> {
        // The book changes in one step after the journal, so a panic cannot leave it inconsistent.
        self.accounts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes an entry to the journal and then to the book, even if the client disconnects meanwhile.
    async fn write(&self, entry: Entry) -> io::Result<Recorded> {
        let ledger = self.clone();
        let written = tokio::task::spawn_blocking(move || {
            let mut accounts = ledger.accounts();
            accounts.journal.append(&entry)?;
            accounts.book.apply(entry);
            Ok(accounts.book.last_recorded())
        });
        written.await.map_err(io::Error::other)?
    }

    fn is_released(&self, order: &str) -> bool {
        self.accounts().book.is_released(order)
    }
}

async fn record(
    State(ledger): State<Ledger>,
    effect: Result<Json<Effect>, JsonRejection>,
) -> Result<Json<Recorded>, Failure> {
    let Json(effect) = effect.map_err(|rejection| Failure::BadEffect(rejection.body_text()))?;
    effect.check().map_err(|error| Failure::BadEffect(error.to_string()))?;
    let recorded = ledger.write(Entry::Effect(effect.clone())).await.map_err(Failure::NotDurable)?;
    tracing::info!(
        seq = recorded.seq,
        seen = recorded.seen,
        tool = effect.tool,
        order = effect.order,
        amount = %effect.amount,
        call_key = effect.call_key,
        tenant = effect.tenant,
        "effect recorded"
    );
    Ok(Json(recorded))
}

async fn effects(State(ledger): State<Ledger>, Query(filter): Query<Filter>) -> Json<Effects> {
    let effects = ledger.accounts().book.effects(filter.tenant.as_deref()).cloned().collect();
    Json(Effects { effects })
}

async fn summary(State(ledger): State<Ledger>, Query(filter): Query<Filter>) -> Json<Summary> {
    Json(ledger.accounts().book.summary(filter.tenant.as_deref()))
}

async fn release(State(ledger): State<Ledger>, Path(order): Path<String>) -> Result<Json<Hold>, Failure> {
    ledger.write(Entry::Released(order.clone())).await.map_err(Failure::NotDurable)?;
    ledger.released.notify_waiters();
    tracing::info!(order, "hold released");
    Ok(Json(Hold { released: true }))
}

/// Answers once the order is released, or with `released: false` if the ledger stops first.
async fn wait_for_release(State(ledger): State<Ledger>, Path(order): Path<String>) -> Json<Hold> {
    loop {
        // Registers for the notification before the check, so that a release in between is not missed.
        let mut released = std::pin::pin!(ledger.released.notified());
        released.as_mut().enable();
        if ledger.is_released(&order) {
            return Json(Hold { released: true });
        }
        tokio::select! {
            () = released => {}
            () = ledger.stop.cancelled() => return Json(Hold { released: false }),
        }
    }
}

/// The reason why the ledger refuses a request.
enum Failure {
    BadEffect(String),
    NotDurable(io::Error),
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let (status, error) = match self {
            Self::BadEffect(why) => (StatusCode::BAD_REQUEST, format!("not recorded: {why}")),
            Self::NotDurable(error) => {
                tracing::error!(%error, "cannot write the journal");
                (StatusCode::INTERNAL_SERVER_ERROR, format!("not acknowledged, the journal failed: {error}"))
            }
        };
        (status, Json(serde_json::json!({ "error": error }))).into_response()
    }
}
