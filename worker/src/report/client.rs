//! The client that sends one report over HTTPS.

use bloomery_crds::children::{SKILLS_PATH, SkillPage};
use bloomery_crds::names::is_name;
use bloomery_crds::probe::{TOKEN_SUFFIX, TokenRequest};
use bloomery_crds::report::{Directives, PATH, Report, ServerToken};
use bloomery_crds::run::ReportEndpoint;
use bloomery_http::{body, root_cause};
use bloomery_mcp::ServerTokens;
use bloomery_redact::Redactor;
use reqwest::{RequestBuilder, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::PathBuf;
use std::time::Duration;

/// The time limit for a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The time limit for a report and its response, in addition to the time for which the operator may hold it open.
const TIMEOUT: Duration = Duration::from_secs(15);

/// The largest response of the operator, in bytes. It has room for all replies of people to a Job: each has up to 1 KiB, and JSON may
/// escape a character to six bytes.
const MAX_RESPONSE_BYTES: usize = 256 * 1024;

/// The error of a client that cannot be created.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The certificates of the run document are not PEM.
    #[error("report.ca of the Job's part is not a PEM certificate: {0}")]
    InvalidCertificate(String),
    /// The run document has no certificate.
    #[error("report.ca of the Job's part holds no certificate")]
    NoCertificate,
    /// The HTTP client cannot be built.
    #[error("the client for reports cannot be built: {0}")]
    Client(String),
}

/// The error of a report that was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// Another attempt has taken the Job over.
    #[error("the operator reports that another attempt has taken the Job over: {0}")]
    Superseded(String),
    /// The operator asks for a retry, because its cache is behind the report, or another client wrote first.
    #[error("the operator asks to repeat the report ({status}): {message}")]
    Again {
        /// The status of the response.
        status: StatusCode,
        /// Its message.
        message: String,
    },
    /// The operator has accepted the report, but has not written all of it to the Job yet.
    #[error("the operator has not acknowledged all events of the log yet")]
    Unacknowledged,
    /// The operator refused the report.
    #[error("the operator refused the report ({status}): {message}")]
    Refused {
        /// The status of the response.
        status: StatusCode,
        /// Its message.
        message: String,
    },
    /// The token that the kubelet projects cannot be read.
    #[error("the token {} cannot be read: {source}", .path.display())]
    Token {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The report cannot be serialized.
    #[error("the report cannot be serialized: {0}")]
    Unserializable(String),
    /// The operator cannot be reached, or its response cannot be read.
    #[error("the operator cannot be reached: {0}")]
    Unreachable(String),
}

impl SendError {
    /// Returns whether the operator asks for the same report again soon.
    pub fn asks_for_retry(&self) -> bool {
        matches!(self, Self::Again { .. } | Self::Unacknowledged)
    }

    /// Returns whether the operator does not know the path or the object of the request.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { status: StatusCode::NOT_FOUND, .. })
    }

    /// Returns whether a retry is pointless: the Job or the worker's ServiceAccount is gone, or the report is too large or contradicts
    /// an accepted one. A replica of another version may be able to read a report that this one cannot read.
    pub fn is_permanent(&self) -> bool {
        let permanent = [
            // The worker's ServiceAccount is deleted with the Skill, which invalidates its tokens.
            StatusCode::UNAUTHORIZED,
            StatusCode::FORBIDDEN,
            StatusCode::NOT_FOUND,
            // Another report about the same event of the log was accepted.
            StatusCode::PRECONDITION_FAILED,
            StatusCode::PAYLOAD_TOO_LARGE,
        ];
        matches!(self, Self::Refused { status, .. } if permanent.contains(status))
    }
}

/// Sends reports to the operator. It trusts only the certificates of the run document. Clones share the connections.
#[derive(Debug, Clone)]
pub struct Client {
    http: reqwest::Client,
    url: String,
    token: PathBuf,
    redactor: Redactor,
    /// Receives the tokens for the MCP server.
    server_tokens: Option<ServerTokens>,
}

impl Client {
    /// Creates a client for `endpoint`. `token` is the file of the projected token, which is read for each report because the
    /// kubelet rotates it. `redactor` removes secrets from reports.
    pub fn new(endpoint: &ReportEndpoint, token: PathBuf, redactor: Redactor) -> Result<Self, Error> {
        let roots = reqwest::Certificate::from_pem_bundle(endpoint.ca.as_bytes())
            .map_err(|error| Error::InvalidCertificate(root_cause(&error)))?;
        if roots.is_empty() {
            return Err(Error::NoCertificate);
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
            .map_err(|error| Error::Client(root_cause(&error)))?;
        Ok(Self { http, url: endpoint.url.clone(), token, redactor, server_tokens: None })
    }

    /// Passes the tokens for the MCP server in the operator's responses to `tokens`.
    #[must_use]
    pub fn with_server_tokens(self, tokens: ServerTokens) -> Self {
        Self { server_tokens: Some(tokens), ..self }
    }

    /// Sends one report.
    pub async fn send(&self, report: &Report) -> Result<Directives, SendError> {
        let within = TIMEOUT + Duration::from_secs(report.wait_seconds.into());
        let mut directives: Directives = self.post_to(&self.url, report, within).await?;
        if let (Some(tokens), Some(token)) = (&self.server_tokens, directives.server_token.take()) {
            tokens.set(&token);
        }
        Ok(directives)
    }

    /// Requests a token for the MCP server at the path below that of reports.
    pub async fn request_server_token(&self, request: &TokenRequest) -> Result<ServerToken, SendError> {
        self.post_to(&format!("{}{TOKEN_SUFFIX}", self.url), request, TIMEOUT).await
    }

    /// Sends a report of any kind, and returns the operator's response.
    pub async fn post<T: Serialize, R: DeserializeOwned>(&self, report: &T) -> Result<R, SendError> {
        self.post_to(&self.url, report, TIMEOUT).await
    }

    /// Reads a page of the Skills that the Job may invoke: the first one, or the one after a name.
    pub async fn skills(&self, after: Option<&str>) -> Result<SkillPage, SendError> {
        let base = self.url.strip_suffix(PATH).unwrap_or(&self.url);
        // The names of Skills need no escapes. Another text would come from another server.
        let query = after.filter(|name| is_name(name)).map(|name| format!("?after={name}")).unwrap_or_default();
        self.exchange(self.http.get(format!("{base}{SKILLS_PATH}{query}"))).await
    }

    async fn post_to<T: Serialize, R: DeserializeOwned>(
        &self,
        url: &str,
        report: &T,
        within: Duration,
    ) -> Result<R, SendError> {
        let mut body = serde_json::to_value(report).map_err(|error| SendError::Unserializable(error.to_string()))?;
        self.redactor.redact_json(&mut body);
        self.exchange(self.http.post(url).json(&body).timeout(within)).await
    }

    /// Sends a request with the token of the pod, and reads the response.
    async fn exchange<R: DeserializeOwned>(&self, request: RequestBuilder) -> Result<R, SendError> {
        let token = std::fs::read_to_string(&self.token)
            .map_err(|source| SendError::Token { path: self.token.clone(), source })?;
        let response = request
            .bearer_auth(token.trim())
            .send()
            .await
            .map_err(|error| SendError::Unreachable(root_cause(&error)))?;
        let status = response.status();
        let body = body::read(response, MAX_RESPONSE_BYTES)
            .await
            .map_err(|error| SendError::Unreachable(error.to_string()))?;
        let message = || self.redactor.quote(&String::from_utf8_lossy(&body), 256);
        match status {
            StatusCode::OK => serde_json::from_slice(&body)
                .map_err(|error| SendError::Unreachable(format!("its reply cannot be read: {error}"))),
            StatusCode::GONE => Err(SendError::Superseded(message())),
            StatusCode::CONFLICT | StatusCode::TOO_EARLY => Err(SendError::Again { status, message: message() }),
            _ => Err(SendError::Refused { status, message: message() }),
        }
    }
}
