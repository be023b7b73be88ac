//! Tells the ledger of effects, and waits at its holds.

use std::time::{Duration, Instant};

use reqwest::StatusCode;

use crate::http;
use crate::ledger::{Effect, Hold, Recorded};

/// How long the ledger may take to make an effect durable.
const RECORD_TIMEOUT: Duration = Duration::from_secs(20);

/// How long a connection to it is tried for.
const CONNECTING: Duration = Duration::from_secs(10);

/// How long to leave the ledger alone after it could not be asked about a hold.
const HOLD_RETRY: Duration = Duration::from_millis(500);

/// The ledger, as seen from here.
#[derive(Clone, Debug)]
pub(super) struct LedgerClient {
    client: reqwest::Client,
    url: Option<String>,
    tenant: Option<String>,
}

/// Why an effect was not acknowledged.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    /// Nothing happened.
    #[error("nothing was refunded: {0}")]
    NotRecorded(String),
    /// It may have happened.
    #[error("whether the refund happened is unknown: {0}")]
    Unknown(String),
}

impl LedgerClient {
    pub(super) fn new(url: Option<String>, tenant: Option<String>) -> Result<Self, reqwest::Error> {
        let url = url.map(|url| url.trim_end_matches('/').to_owned());
        Ok(Self { client: http::client()?, url, tenant })
    }

    /// Records one effect, sent once, and returns when it is durable.
    pub(super) async fn record(&self, effect: Effect) -> Result<Recorded, RecordError> {
        let Some(url) = &self.url else {
            return Err(RecordError::NotRecorded("this server has no ledger; set LEDGER_URL".to_owned()));
        };
        let effect = Effect { tenant: self.tenant.clone(), ..effect };
        let answer = self.connected(&format!("{url}/effects"), &effect).await.map_err(|error| not_sent(&error))?;
        match answer.status() {
            StatusCode::OK => answer.json().await.map_err(|error| RecordError::Unknown(chain(&error))),
            status if status.is_client_error() => Err(RecordError::NotRecorded(format!("the ledger says {status}"))),
            status => Err(RecordError::Unknown(format!("the ledger says {status}"))),
        }
    }

    /// Sends an effect once. A Service that was made a moment ago may not lead anywhere yet, so a connection is tried for
    /// some time.
    async fn connected(&self, url: &str, effect: &Effect) -> Result<reqwest::Response, reqwest::Error> {
        let began = Instant::now();
        loop {
            match self.client.post(url).timeout(RECORD_TIMEOUT).json(effect).send().await {
                Err(error) if error.is_connect() && began.elapsed() < CONNECTING => {
                    tokio::time::sleep(HOLD_RETRY).await;
                }
                answered => return answered,
            }
        }
    }

    /// Waits until the ledger releases the order, however often the ledger comes and goes.
    pub(super) async fn released(&self, order: &str) {
        let Some(url) = &self.url else { return };
        loop {
            match self.hold(&format!("{url}/holds/{order}")).await {
                Ok(Hold { released: true }) => return,
                Ok(Hold { released: false }) => tracing::info!(order, "the ledger stops; asking again"),
                Err(error) => tracing::warn!(order, error = chain(&error), "cannot ask for the hold; asking again"),
            }
            tokio::time::sleep(HOLD_RETRY).await;
        }
    }

    async fn hold(&self, url: &str) -> Result<Hold, reqwest::Error> {
        self.client.get(url).send().await?.error_for_status()?.json().await
    }
}

/// Says what a request that got no answer means: only one without a connection did nothing.
fn not_sent(error: &reqwest::Error) -> RecordError {
    if error.is_connect() || error.is_builder() {
        RecordError::NotRecorded(format!("the ledger cannot be reached: {}", chain(error)))
    } else {
        RecordError::Unknown(chain(error))
    }
}

/// Tells an error with its causes: reqwest's own text leaves them out.
fn chain(error: &reqwest::Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
