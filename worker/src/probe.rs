//! Probes the MCP server of a Skill: lists its tools, compiles the rules of the Skill against them, and reports both to the operator
//! (`docs/explanation/design.md`, section 7).
//!
//! The authors of rules are tenants. So their rules are compiled in this process, and not in the operator.

use crate::attempt::SESSION_CLOSE_TIMEOUT;
use crate::report::{self, SendError};
use crate::settings::ProbeArgs;
use crate::{ending, inputs};
use bloomery_crds::pod::MCP_CONTAINER;
use bloomery_crds::probe::{MAX_RULE_ERROR_BYTES, MAX_RULE_ERRORS, ProbePart, ProbeReceipt, ProbeReport, TokenRequest};
use bloomery_crds::run::{self, ExternalMcp, McpEndpoint, Revision};
use bloomery_crds::text::bounded;
use bloomery_crds::tool_pins::ToolPins;
use bloomery_engine::lint;
use bloomery_engine::tool::ListedTool;
use bloomery_http::credential::Credential;
use bloomery_http::{Backoff, certificates};
use bloomery_mcp::{self as mcp, ServerTokens};
use bloomery_redact::Redactor;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The first delay before a server is asked again, or a report is repeated.
const FIRST_DELAY: Duration = Duration::from_millis(500);

/// The longest delay before a server is asked again, or a report is repeated.
const MAX_DELAY: Duration = Duration::from_secs(5);

/// The time limit for the operator's acknowledgement. The deadline of the pod is later.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_mins(1);

/// The error of a probe that did not report.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error(transparent)]
    File(#[from] inputs::Error),
    /// A part of the run document cannot be used.
    #[error(transparent)]
    Part(#[from] run::Error),
    /// The Skill has no MCP server.
    #[error("the revision names no MCP server")]
    NoServer,
    /// An HTTP client cannot be set up.
    #[error(transparent)]
    Http(#[from] bloomery_http::Error),
    /// A credential or the certificates of a server outside of the cluster are missing or cannot be used. The next pod mounts what is
    /// there then.
    #[error("the MCP server {0}")]
    Credentials(String),
    /// The server did not list its tools in time.
    #[error("{0}")]
    Server(#[from] mcp::Error),
    /// The client for reports cannot be set up.
    #[error(transparent)]
    Report(#[from] report::Error),
    /// The operator did not accept the report.
    #[error("the tools were listed, but not reported: {0}")]
    NotReported(SendError),
    /// The operator did not give the token for the server.
    #[error("the operator did not give the token for the MCP server: {0}")]
    NoToken(SendError),
}

/// Probes the server that `args` describe. An error is also the termination message of the pod.
///
/// # Errors
/// If the server did not list its tools in time, or the operator did not accept the report.
pub async fn run(args: &ProbeArgs, redactor: &Redactor) -> Result<(), Error> {
    redactor.watch("report token", &args.token);
    let result = probe_and_report(args, redactor).await;
    if let Err(error) = &result {
        ending::write_failure(&redactor.redact_text(&error.to_string()), &args.termination_log);
    }
    result
}

async fn probe_and_report(args: &ProbeArgs, redactor: &Redactor) -> Result<(), Error> {
    let revision = run::open_revision(&inputs::text(&args.revision)?, &args.revision_digest)?;
    let part: ProbePart = run::open_sealed("the probe's part", &inputs::text(&args.part)?, &args.part_digest)?;
    let endpoint = revision.mcp.as_ref().ok_or(Error::NoServer)?;
    let reports = report::Client::new(&part.report, args.token.clone(), redactor.clone())?;
    let until = Instant::now() + Duration::from_secs(args.patience);
    let is_outside = revision.spec.mcp_server.as_ref().is_some_and(|server| server.uri.is_some());
    let client = if is_outside {
        external_client(endpoint, &part, args, redactor).await?
    } else {
        client(endpoint, &revision, (&part, &reports), until, redactor).await?
    };
    let listed = list(client, &revision, until).await?;
    tracing::info!(tools = listed.len(), "the MCP server has listed its tools");
    let report = report_of(part, &revision, &listed);
    for error in &report.rule_errors {
        tracing::warn!("{error}");
    }
    send(&reports, &report).await
}

/// Creates the client of a server outside of the cluster, as a worker does. Without its credentials, it is not asked.
async fn external_client(
    endpoint: &McpEndpoint,
    part: &ProbePart,
    args: &ProbeArgs,
    redactor: &Redactor,
) -> Result<mcp::Client, Error> {
    let external = part.external_mcp.clone().unwrap_or_default();
    check_credentials(&external).map_err(Error::Credentials)?;
    redactor.watch_server(&external);
    if redactor.is_too_large() {
        return Err(inputs::Error::Secrets.into());
    }
    let addresses = args.addresses.policy(&part.skill.namespace).await;
    Ok(mcp::Client::external(addresses, endpoint, &external, redactor.clone()))
}

/// Checks that the credentials and certificates of a server can be used. An error is a clause about the server.
fn check_credentials(external: &ExternalMcp) -> Result<(), String> {
    for header in &external.headers {
        Credential::read(Some(&header.file)).map_err(|error| error.to_string())?;
    }
    if let Some(ca) = &external.ca {
        let pem = certificates::read(ca).map_err(|error| error.to_string())?;
        certificates::parse(ca, &pem).map_err(|error| error.to_string())?;
    }
    Ok(())
}

/// Creates the client of a server in the cluster. If the operator runs the server, it first gives the token for it.
async fn client(
    endpoint: &McpEndpoint,
    revision: &Revision,
    (part, reports): (&ProbePart, &report::Client),
    until: Instant,
    redactor: &Redactor,
) -> Result<mcp::Client, Error> {
    let Some(server) = revision.spec.mcp_server.as_ref().filter(|server| server.takes_token()) else {
        let client = mcp::Client::new(endpoint, redactor.clone())?;
        let is_sidecar = revision.spec.mcp_server.as_ref().is_some_and(|server| server.sidecar().is_some());
        return Ok(if is_sidecar { client.as_sidecar(MCP_CONTAINER) } else { client });
    };
    let optional_until = Instant::now() + ServerTokens::OPTIONAL_WAIT;
    let until = if server.requires_token() { until } else { until.min(optional_until) };
    let request = TokenRequest { skill: part.skill.clone(), pod: part.pod.clone() };
    // An operator of an earlier version does not know the request.
    let is_final = |error: &SendError| !server.requires_token() && error.is_not_found();
    let requested = repeated(until, ("the token for the server is requested again", is_final), async || {
        reports.request_server_token(&request).await
    });
    let mut tokens = ServerTokens::new(redactor.clone());
    match requested.await {
        Ok(token) => tokens.set(&token),
        Err(error) if server.requires_token() => return Err(Error::NoToken(error)),
        Err(error) => {
            tracing::info!("the operator did not give the token for the MCP server, which may not need it: {error}");
            tokens = tokens.optional();
        }
    }
    Ok(mcp::Client::with_token(endpoint, tokens, redactor.clone())?)
}

/// Lists the tools of the server, and ends the session. A server that does not answer is asked again before `until`.
async fn list(client: mcp::Client, revision: &Revision, until: Instant) -> Result<Vec<ListedTool>, Error> {
    let client = client.with_max_result_bytes(revision.spec.max_result_bytes());
    let listed = Box::pin(list_before(&client, until)).await;
    // Also if the list cannot be used: the process ends, and the server would keep the session until it expires.
    let _ = tokio::time::timeout(SESSION_CLOSE_TIMEOUT, client.close()).await;
    listed.map_err(Error::from)
}

/// Lists the tools of the server. A server that does not answer is asked again before `until`.
async fn list_before(client: &mcp::Client, until: Instant) -> Result<Vec<ListedTool>, mcp::Error> {
    let mut delays = Backoff::new(FIRST_DELAY, MAX_DELAY);
    loop {
        let within = until.saturating_duration_since(Instant::now());
        let error = match client.list_uncached(within).await {
            Ok(listed) => return Ok(listed),
            Err(error) => error,
        };
        let delay = delays.next_delay();
        let may_pass = matches!(error, mcp::Error::Unavailable { .. });
        if !may_pass || Instant::now() + delay >= until {
            return Err(error);
        }
        tracing::info!("{error}; the server is asked again");
        sleep(delay).await;
    }
}

/// Pins the listed tools, and compiles the rules of the Skill against them, as a Job does.
fn report_of(part: ProbePart, revision: &Revision, listed: &[ListedTool]) -> ProbeReport {
    let ProbePart { skill, pod, subject, report: _, external_mcp: _ } = part;
    let errors = lint::rule_errors(&revision.spec, listed.iter().map(lint::ServerTool::from));
    let more = errors.len().saturating_sub(MAX_RULE_ERRORS);
    let texts = errors.iter().take(MAX_RULE_ERRORS).map(|error| bounded(&error.to_string(), MAX_RULE_ERROR_BYTES));
    ProbeReport {
        skill,
        pod,
        subject,
        tools: ToolPins::from_listed(listed.iter().map(ListedTool::pin).collect()),
        count: u32::try_from(listed.len()).unwrap_or(u32::MAX),
        rule_errors: texts.collect(),
        more_rule_errors: u32::try_from(more).unwrap_or(u32::MAX),
    }
}

/// Sends the report until the operator accepts it.
async fn send(reports: &report::Client, report: &ProbeReport) -> Result<(), Error> {
    let until = Instant::now() + ACKNOWLEDGE_TIMEOUT;
    let sent = repeated(until, ("the report is repeated", |_: &SendError| false), async || {
        reports.post::<_, ProbeReceipt>(report).await
    });
    sent.await.map(|ProbeReceipt {}| ()).map_err(Error::NotReported)
}

/// Repeats a request to the operator before `until`, until it succeeds or its error is final. The API server may refuse the token of a
/// new pod for some seconds, so other errors may pass.
async fn repeated<T>(
    until: Instant,
    (what, is_final): (&str, impl Fn(&SendError) -> bool),
    request: impl AsyncFn() -> Result<T, SendError>,
) -> Result<T, SendError> {
    let mut delays = Backoff::new(FIRST_DELAY, MAX_DELAY);
    loop {
        let error = match request().await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        let delay = delays.next_delay();
        if is_final(&error) || Instant::now() + delay >= until {
            return Err(error);
        }
        tracing::info!("{error}; {what}");
        sleep(delay).await;
    }
}

#[cfg(test)]
mod tests;
