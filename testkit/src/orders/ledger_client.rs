//! A client of the ledger: records effects and waits for releases.

use std::time::{Duration, Instant};

use reqwest::StatusCode;

use crate::http;
use crate::ledger::{Effect, Hold, Recorded};

/// The time limit for recording an effect.
const RECORD_TIMEOUT: Duration = Duration::from_secs(20);

/// The time limit for connecting, retries included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The interval between requests to a ledger that does not answer.
const RETRY_INTERVAL: Duration = Duration::from_millis(500);

/// A client of the ledger.
#[derive(Clone, Debug)]
pub(super) struct LedgerClient {
    client: reqwest::Client,
    url: Option<String>,
    tenant: Option<String>,
}

/// Error of an effect that the ledger did not acknowledge.
#[derive(Debug, thiserror::Error)]
pub(super) enum RecordError {
    /// The effect did not happen.
    #[error("nothing was refunded: {0}")]
    NotRecorded(String),
    /// The effect may have happened.
    #[error("whether the refund happened is unknown: {0}")]
    Unknown(String),
}

impl LedgerClient {
    pub(super) fn new(url: Option<String>, tenant: Option<String>) -> Result<Self, reqwest::Error> {
        let url = url.map(|url| url.trim_end_matches('/').to_owned());
        Ok(Self { client: http::client()?, url, tenant })
    }

    /// Records an effect in the ledger, and returns once it is durable. Sends the effect at most once.
    pub(super) async fn record(&self, effect: Effect) -> Result<Recorded, RecordError> {
        let Some(url) = &self.url else {
            return Err(RecordError::NotRecorded("this server has no ledger; set LEDGER_URL".to_owned()));
        };
        let effect = Effect { tenant: self.tenant.clone(), ..effect };
        let answer = self.send_once(&format!("{url}/effects"), &effect).await.map_err(|error| classify(&error))?;
        match answer.status() {
            StatusCode::OK => answer.json().await.map_err(|error| RecordError::Unknown(chain(&error))),
            status if status.is_client_error() => {
                Err(RecordError::NotRecorded(format!("the ledger answered {status}")))
            }
            status => Err(RecordError::Unknown(format!("the ledger answered {status}"))),
        }
    }

    /// Sends an effect at most once. Retries only the connection: a Service that was just created may have no endpoints yet.
    async fn send_once(&self, url: &str, effect: &Effect) -> Result<reqwest::Response, reqwest::Error> {
        let began = Instant::now();
        loop {
            match self.client.post(url).timeout(RECORD_TIMEOUT).json(effect).send().await {
                Err(error) if error.is_connect() && began.elapsed() < CONNECT_TIMEOUT => {
                    tokio::time::sleep(RETRY_INTERVAL).await;
                }
                answered => return answered,
            }
        }
    }

    /// Waits until the ledger releases the order, across restarts of the ledger.
    pub(super) async fn wait_for_release(&self, order: &str) {
        let Some(url) = &self.url else { return };
        loop {
            match self.fetch_hold(&format!("{url}/holds/{order}")).await {
                Ok(Hold { released: true }) => return,
                Ok(Hold { released: false }) => tracing::info!(order, "the ledger stops; requesting the hold again"),
                Err(error) => tracing::warn!(order, error = chain(&error), "cannot request the hold; trying again"),
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        }
    }

    /// Requests the hold of an order. The ledger answers once it releases the order or stops.
    async fn fetch_hold(&self, url: &str) -> Result<Hold, reqwest::Error> {
        self.client.get(url).send().await?.error_for_status()?.json().await
    }
}

/// Classifies a request without a response. Only a request without a connection certainly had no effect.
fn classify(error: &reqwest::Error) -> RecordError {
    if error.is_connect() || error.is_builder() {
        RecordError::NotRecorded(format!("the ledger cannot be reached: {}", chain(error)))
    } else {
        RecordError::Unknown(chain(error))
    }
}

/// Returns the messages of an error and its causes, which reqwest's own message leaves out.
fn chain(error: &reqwest::Error) -> String {
    let causes = std::iter::successors(std::error::Error::source(error), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
