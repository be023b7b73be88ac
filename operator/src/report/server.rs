//! The HTTP server of the report endpoint, over TLS. Connections, sizes and times are bounded.

use super::auth::{self, Admitted};
use super::connections::{Connection, Connections};
use super::hold::Held;
use super::open_files;
use super::refusal::Refusal;
use super::service::Service;
use super::tls::{self, ServedCertificate};
use crate::context::Context;
use crate::listen;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{DefaultBodyLimit, FromRequest, Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::routing::{get, post};
use axum::{Extension, Json, Router};
use bloomery_crds::canonical;
use bloomery_crds::children::{SKILLS_PATH, SkillPage};
use bloomery_crds::probe::{self, ProbeReceipt, TOKEN_SUFFIX};
use bloomery_crds::report::{Directives, MAX_BYTES, PATH, Report, ServerToken};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde::de::DeserializeOwned;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// The pause after a connection could not be accepted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The maximum number of connections to one replica. They fit into the memory limit of the chart. If more workers run, idle
/// connections are closed for others.
const MAX_CONNECTIONS: usize = 4096;

/// The timeout of a TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);

/// The time limits of requests.
const TIMEOUTS: Timeouts = Timeouts { headers: Duration::from_secs(20), body: Duration::from_secs(10) };

/// The maximum size of the request headers in bytes. The token is the largest.
const MAX_HEADER_BYTES: usize = 16 * 1024;

/// The time that requests in progress may take after the shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// The time limits of a request.
#[derive(Debug, Clone, Copy)]
struct Timeouts {
    /// For the headers, from the end of the request before. A worker reports every 4 s.
    headers: Duration,
    /// For the body.
    body: Duration,
}

/// The state that all routes use.
#[derive(Clone)]
struct Shared {
    service: Arc<Service>,
    timeouts: Timeouts,
}

/// The address from which a request comes.
#[derive(Debug, Clone, Copy)]
struct Peer(IpAddr);

/// Serves reports until the shutdown, then finishes those in progress.
///
/// # Errors
/// Returns an error if the address cannot be bound, or if TLS cannot be set up.
pub async fn serve(context: Arc<Context>, shutdown: CancellationToken) -> std::io::Result<()> {
    let certificate = Arc::new(ServedCertificate::default());
    let tls = tls::config(certificate.clone()).map_err(std::io::Error::other)?;
    let address = context.settings.report.addr;
    let listener = listen::bind(address).map_err(|error| {
        std::io::Error::new(
            error.kind(),
            format!("cannot listen for reports at {address} (BLOOMERY_REPORT_ADDR): {error}"),
        )
    })?;
    context.readiness.report_listener.set();
    let connections = Connections::new(max_connections(open_files::raise_limit()));
    let router = router(Arc::new(Service::new(context.clone(), shutdown.clone())), TIMEOUTS);
    tokio::select! {
        () = accept_connections(listener, TlsAcceptor::from(Arc::new(tls)), router, &connections, &shutdown) => {}
        () = tls::keep_renewed(&context, &certificate) => {}
    }
    Ok(())
}

/// Returns the maximum number of connections for a limit of open files. The other half is for the clients of the operator.
fn max_connections(open_files: Option<u64>) -> usize {
    let half = open_files.and_then(|files| usize::try_from(files / 2).ok());
    half.map_or(MAX_CONNECTIONS, |half| half.clamp(1, MAX_CONNECTIONS))
}

/// The routes of the endpoint.
fn router(service: Arc<Service>, timeouts: Timeouts) -> Router {
    Router::new()
        .route(PATH, post(report))
        .route(SKILLS_PATH, get(skills))
        .route(probe::PATH, post(probe_report))
        .route(&format!("{}{TOKEN_SUFFIX}", probe::PATH), post(server_token))
        .fallback(async || (StatusCode::NOT_FOUND, error_body(&format!("reports are sent to {PATH}"))))
        .method_not_allowed_fallback(async || {
            (StatusCode::METHOD_NOT_ALLOWED, error_body("reports are sent with POST"))
        })
        .layer(DefaultBodyLimit::max(MAX_BYTES))
        .with_state(Shared { service, timeouts })
}

fn error_body(message: &str) -> Json<serde_json::Value> {
    Json(serde_json::json!({ "error": message }))
}

async fn report(
    State(Shared { service, timeouts }): State<Shared>,
    request: Request,
) -> Result<Json<Directives>, Refusal> {
    let result = match receive(&service, request, timeouts.body).await {
        Ok((admitted, report)) => answer_report(&service, &admitted, report).await,
        Err(refusal) => Err(refusal),
    };
    result.map(Json).inspect_err(|refusal| service.count_refusal(refusal))
}

/// Handles a report, and holds its answer open if the report allows that. A held answer needs the turn of the pod, but not the report.
async fn answer_report(service: &Service, admitted: &Admitted, report: Report) -> Result<Directives, Refusal> {
    let directives = Box::pin(service.handle(&admitted.caller, &report)).await?;
    let held = Held::new(&report);
    drop(report);
    Ok(match held {
        Some(held) => service.hold(&held, directives).await,
        None => directives,
    })
}

/// Answers with a page of the Skills that the Job of a worker may invoke.
async fn skills(
    State(Shared { service, timeouts: _ }): State<Shared>,
    request: Request,
) -> Result<Json<SkillPage>, Refusal> {
    let result = page_of_skills(&service, request).await;
    result.map(Json).inspect_err(|refusal| service.count_refusal(refusal))
}

async fn page_of_skills(service: &Service, request: Request) -> Result<SkillPage, Refusal> {
    let ((token, peer), after) = (credentials(&request)?, after(&request));
    let admitted = service.admit(&token, peer).await?;
    service.skills(&admitted.caller, &after).await
}

/// Returns the name after which a page begins. The name of a Skill needs no escapes.
fn after(request: &Request) -> String {
    let query = request.uri().query().unwrap_or_default();
    query.split('&').find_map(|parameter| parameter.strip_prefix("after=")).unwrap_or_default().to_owned()
}

async fn probe_report(
    State(Shared { service, timeouts }): State<Shared>,
    request: Request,
) -> Result<Json<ProbeReceipt>, Refusal> {
    let result = match receive(&service, request, timeouts.body).await {
        Ok((admitted, report)) => service.handle_probe(&admitted.caller, &report).await,
        Err(refusal) => Err(refusal),
    };
    result.map(Json).inspect_err(|refusal| service.count_refusal(refusal))
}

async fn server_token(
    State(Shared { service, timeouts }): State<Shared>,
    request: Request,
) -> Result<Json<ServerToken>, Refusal> {
    let result = match receive(&service, request, timeouts.body).await {
        Ok((admitted, request)) => service.handle_token_request(&admitted.caller, &request).await,
        Err(refusal) => Err(refusal),
    };
    result.map(Json).inspect_err(|refusal| service.count_refusal(refusal))
}

/// Admits a request and receives its body. The body is read only if the token is valid, so that nobody else can make the operator
/// hold bodies.
async fn receive<T: DeserializeOwned>(
    service: &Service,
    request: Request,
    timeout: Duration,
) -> Result<(Admitted, T), Refusal> {
    let (token, peer) = credentials(&request)?;
    let admitted = service.admit(&token, peer).await?;
    let body = tokio::time::timeout(timeout, Bytes::from_request(request, &())).await;
    let body =
        body.map_err(|_| Refusal::TooSlow(format!("the body of the report did not arrive within {timeout:?}")))?;
    Ok((admitted, parse_body(body)?))
}

/// Returns the token of a request, which has the form of a worker's, and the address from which it comes.
fn credentials(request: &Request) -> Result<(String, IpAddr), Refusal> {
    let token = bearer_token(request.headers())?.to_owned();
    auth::check_form(&token)?;
    let peer = request.extensions().get::<Peer>().map_or(IpAddr::from([0; 4]), |Peer(address)| *address);
    Ok((token, peer))
}

fn bearer_token(headers: &HeaderMap) -> Result<&str, Refusal> {
    let authorization = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match authorization.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty() => Ok(token.trim()),
        _ => Err(Refusal::Unauthorized("a report needs the worker's token: Authorization: Bearer ...".to_owned())),
    }
}

fn parse_body<T: DeserializeOwned>(body: Result<Bytes, BytesRejection>) -> Result<T, Refusal> {
    let body = body.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => Refusal::TooLarge(format!("a report is at most {MAX_BYTES} bytes long")),
        _ => Refusal::Invalid(format!("the report is incomplete: {}", rejection.body_text())),
    })?;
    let text = str::from_utf8(&body).map_err(|error| Refusal::Invalid(format!("the report is not UTF-8: {error}")))?;
    let invalid = |why: String| Refusal::Invalid(format!("the report cannot be read: {why}"));
    let value = canonical::parse(text).map_err(|error| invalid(error.to_string()))?;
    serde_json::from_value(value).map_err(|error| invalid(error.to_string()))
}

async fn accept_connections(
    listener: TcpListener,
    tls: TlsAcceptor,
    router: Router,
    connections: &Arc<Connections>,
    shutdown: &CancellationToken,
) {
    let tasks = TaskTracker::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = shutdown.cancelled() => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let address = peer.ip().to_canonical();
                let Some(connection) = connections.open(address) else { continue };
                let router = router.clone().layer(Extension(Peer(address)));
                tasks.spawn(serve_connection(stream, connection, tls.clone(), router, shutdown.clone()));
            }
            Err(error) => {
                // The process is probably out of file descriptors. Connections that end release some.
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            }
        }
    }
    tasks.close();
    let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, tasks.wait()).await;
}

/// Serves a connection until it ends, or until its address yields it.
async fn serve_connection(
    stream: TcpStream,
    connection: Connection,
    tls: TlsAcceptor,
    router: Router,
    shutdown: CancellationToken,
) {
    tokio::select! {
        () = serve_stream(stream, tls, router, shutdown) => {}
        () = connection.yielded() => tracing::debug!("a connection was closed for one of another address"),
    }
}

async fn serve_stream(stream: TcpStream, tls: TlsAcceptor, router: Router, shutdown: CancellationToken) {
    // Without this option, the first response waits 40 ms until the worker's kernel acknowledges the last TLS message.
    if let Err(error) = stream.set_nodelay(true) {
        return tracing::debug!(%error, "a connection ended before its handshake");
    }
    let stream = match tokio::time::timeout(HANDSHAKE_TIMEOUT, tls.accept(stream)).await {
        Ok(Ok(stream)) => stream,
        Ok(Err(error)) => return tracing::debug!(%error, "a TLS handshake failed"),
        Err(_) => return tracing::debug!("a TLS handshake took too long"),
    };
    serve_requests(stream, router, TIMEOUTS.headers, shutdown).await;
}

async fn serve_requests<S>(stream: S, router: Router, header_timeout: Duration, shutdown: CancellationToken)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let requests = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(header_timeout)
        .max_buf_size(MAX_HEADER_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut requests = std::pin::pin!(requests);
    let ended = tokio::select! {
        ended = requests.as_mut() => ended,
        () = shutdown.cancelled() => {
            requests.as_mut().graceful_shutdown();
            requests.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection ended early");
    }
}

#[cfg(test)]
mod flood;
#[cfg(test)]
mod tests;
