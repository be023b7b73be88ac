//! One report over HTTPS.

use crate::http::{cause, read_bounded};
use bloomery_crds::report::{Directives, Report};
use bloomery_crds::run::ReportEndpoint;
use bloomery_redact::Redactor;
use reqwest::StatusCode;
use std::path::PathBuf;
use std::time::Duration;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const TIMEOUT: Duration = Duration::from_secs(15);
/// All replies of a Job, each of 1 KiB of characters that JSON writes as six.
const MAX_REPLY: usize = 256 * 1024;

/// Why a report was not taken.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// Another attempt has taken the Job over.
    #[error("the operator says that another attempt has taken the Job over: {0}")]
    Superseded(String),
    /// The operator is not ready for it: the report is ahead of what it knows, or someone else wrote first.
    #[error("the operator wants the report again ({status}): {message}")]
    Again {
        /// The status of the reply.
        status: StatusCode,
        /// What it said.
        message: String,
    },
    /// The operator has taken the report, and not written all of it yet.
    #[error("the operator has not acknowledged all of the log yet")]
    Unacknowledged,
    /// The operator refused the report.
    #[error("the operator refused the report ({status}): {message}")]
    Refused {
        /// The status of the reply.
        status: StatusCode,
        /// What it said.
        message: String,
    },
    /// The token that the kubelet projects cannot be read.
    #[error("the token {} cannot be read: {source}", .path.display())]
    Token {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The report cannot be written as JSON.
    #[error("the report cannot be written: {0}")]
    Unwritable(String),
    /// The operator cannot be reached, or what it answers cannot be read.
    #[error("the operator cannot be reached: {0}")]
    Unreachable(String),
}

impl Failure {
    /// Whether the same report is most likely taken in a moment.
    pub fn is_soon_over(&self) -> bool {
        matches!(self, Self::Again { .. } | Self::Unacknowledged)
    }

    /// Whether sending it again is of no use: the Job or the worker's identity is gone, or the operator does not
    /// take such reports.
    pub fn is_hopeless(&self) -> bool {
        let hopeless = [
            // The worker's ServiceAccount goes with the Skill, and its tokens with it.
            StatusCode::UNAUTHORIZED,
            StatusCode::FORBIDDEN,
            StatusCode::NOT_FOUND,
            StatusCode::PAYLOAD_TOO_LARGE,
            StatusCode::UNPROCESSABLE_ENTITY,
        ];
        matches!(self, Self::Refused { status, .. } if hopeless.contains(status))
    }
}

/// Sends reports to the operator, and to nobody else: only the certificates of the run document are trusted.
#[derive(Debug)]
pub struct Client {
    http: reqwest::Client,
    url: String,
    token: PathBuf,
    redactor: Redactor,
}

impl Client {
    /// Makes a client for `endpoint`; `token` is the file of the projected token, read anew for each report,
    /// because the kubelet rotates it. No report holds a secret that `redactor` knows.
    ///
    /// # Errors
    /// If the certificates are not PEM, as a sentence.
    pub fn new(endpoint: &ReportEndpoint, token: PathBuf, redactor: Redactor) -> Result<Self, String> {
        let roots = reqwest::Certificate::from_pem_bundle(endpoint.ca.as_bytes())
            .map_err(|error| format!("report.ca of the Job's part is not a PEM certificate: {}", cause(&error)))?;
        if roots.is_empty() {
            return Err("report.ca of the Job's part holds no certificate".to_owned());
        }
        let http = reqwest::Client::builder()
            .tls_certs_only(roots)
            .https_only(true)
            .http1_only()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            .pool_max_idle_per_host(1)
            .build()
            .map_err(|error| format!("the client for reports cannot be made: {}", cause(&error)))?;
        Ok(Self { http, url: endpoint.url.clone(), token, redactor })
    }

    /// Sends one report.
    pub async fn send(&self, report: &Report) -> Result<Directives, Failure> {
        let token = std::fs::read_to_string(&self.token)
            .map_err(|source| Failure::Token { path: self.token.clone(), source })?;
        let mut body = serde_json::to_value(report).map_err(|error| Failure::Unwritable(error.to_string()))?;
        self.redactor.json(&mut body);
        let response = self
            .http
            .post(&self.url)
            .bearer_auth(token.trim())
            .json(&body)
            .send()
            .await
            .map_err(|error| Failure::Unreachable(cause(&error)))?;
        let status = response.status();
        let body = read_bounded(response, MAX_REPLY).await.map_err(|error| Failure::Unreachable(error.to_string()))?;
        let message = || self.redactor.quote(&String::from_utf8_lossy(&body), 256);
        match status {
            StatusCode::OK => serde_json::from_slice(&body)
                .map_err(|error| Failure::Unreachable(format!("its reply cannot be read: {error}"))),
            StatusCode::GONE => Err(Failure::Superseded(message())),
            StatusCode::CONFLICT | StatusCode::TOO_EARLY => Err(Failure::Again { status, message: message() }),
            _ => Err(Failure::Refused { status, message: message() }),
        }
    }
}
