//! Passes requests on to an MCP server that speaks streamable HTTP on the loopback address.
//!
//! Bodies are streamed in both directions, so an answer that is a stream of events passes as the server sends it.

use crate::arguments::Guard;
use crate::gate::{self, Gate, NOT_DELIVERED, not_delivered};
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONNECTION, HOST, TE, TRAILER, TRANSFER_ENCODING, UPGRADE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;

/// The time limit of a health check. It is below the limit of a kubelet's probe, 1 s.
const HEALTH_TIMEOUT: Duration = Duration::from_millis(900);

/// The headers that belong to one connection and are not passed on.
const OF_CONNECTION: [HeaderName; 7] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRAILER,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The server.
#[derive(Debug)]
struct Server {
    path: String,
    port: u16,
    host: HeaderValue,
    health_path: Option<String>,
    health_port: u16,
}

/// Returns the router that passes requests with a token on, and answers the probes of the kubelet.
pub(crate) fn router(guard: Guard) -> Router {
    let Guard { access, listen: _, path, port, probe_path, health_path, health_port } = guard;
    let health_port = health_port.unwrap_or(port);
    let server = Arc::new(Server { path, port, host: host(port), health_path, health_port });
    let passed = gate::before(Router::new().fallback(pass_on).with_state(Arc::clone(&server)), Gate::new(access));
    let shown: Router = Router::new().route(&probe_path, get(health)).with_state(server);
    passed.merge(shown)
}

/// The server is asked under its loopback address, because servers there refuse the names of other hosts.
fn host(port: u16) -> HeaderValue {
    HeaderValue::from_str(&format!("127.0.0.1:{port}")).unwrap_or(HeaderValue::from_static("127.0.0.1"))
}

async fn pass_on(State(server): State<Arc<Server>>, mut request: Request) -> Response {
    if request.uri().path() != server.path {
        return StatusCode::NOT_FOUND.into_response();
    }
    let mut sender = match connect(server.port).await {
        Ok(sender) => sender,
        Err(error) => {
            let why = format!("the MCP server cannot be reached at 127.0.0.1:{}: {error}", server.port);
            return not_delivered(StatusCode::SERVICE_UNAVAILABLE, why);
        }
    };
    let headers = request.headers_mut();
    remove_headers_of_connection(headers);
    // The server did not issue this token, and may refuse it.
    headers.remove(AUTHORIZATION);
    headers.insert(HOST, server.host.clone());
    match sender.send_request(request).await {
        Ok(mut response) => {
            let headers = response.headers_mut();
            remove_headers_of_connection(headers);
            // Only the guard knows this: a worker repeats such a call.
            headers.remove(NOT_DELIVERED);
            response.map(Body::new)
        }
        // The server may have run the call.
        Err(error) => (StatusCode::BAD_GATEWAY, format!("the MCP server did not answer: {error}")).into_response(),
    }
}

async fn health(State(server): State<Arc<Server>>) -> Response {
    let checked = tokio::time::timeout(HEALTH_TIMEOUT, check(&server)).await;
    match checked.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(status) if status.is_success() || status.is_redirection() => StatusCode::OK.into_response(),
        Ok(status) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("the MCP server answered HTTP {status}")).into_response()
        }
        Err(error) => {
            let port = server.health_port;
            let why = format!("the MCP server cannot be reached at 127.0.0.1:{port}: {error}");
            (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
        }
    }
}

/// Checks the health of the server as its Skill says. A connection begins no session.
async fn check(server: &Server) -> io::Result<StatusCode> {
    let Some(path) = &server.health_path else {
        return TcpStream::connect((Ipv4Addr::LOCALHOST, server.health_port)).await.map(|_| StatusCode::OK);
    };
    let mut sender = connect(server.health_port).await?;
    let request = axum::http::Request::get(path).header(HOST, host(server.health_port)).body(Body::empty());
    let response = sender.send_request(request.map_err(io::Error::other)?).await;
    response.map(|response| response.status()).map_err(io::Error::other)
}

/// Opens a connection to the server. It ends with the request, or when the client of the request goes away.
async fn connect(port: u16) -> io::Result<SendRequest<Body>> {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await?;
    stream.set_nodelay(true)?;
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(io::Error::other)?;
    // An error of the connection is also that of its request.
    tokio::spawn(async move { connection.await.ok() });
    Ok(sender)
}

/// Removes the headers that belong to one connection, with those that `Connection` names.
fn remove_headers_of_connection(headers: &mut HeaderMap) {
    let values = headers.get_all(CONNECTION).iter().filter_map(|value| value.to_str().ok());
    let named: Vec<HeaderName> =
        values.flat_map(|value| value.split(',')).filter_map(|name| name.trim().parse().ok()).collect();
    for name in named.iter().chain(&OF_CONNECTION) {
        headers.remove(name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_of_a_connection_are_not_passed_on() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, x-trace"),
            ("x-trace", "1"),
            ("transfer-encoding", "chunked"),
            ("mcp-session-id", "7"),
            ("last-event-id", "3"),
        ] {
            headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
        }
        remove_headers_of_connection(&mut headers);
        let left: Vec<&str> = headers.keys().map(HeaderName::as_str).collect();
        assert_eq!(left, ["mcp-session-id", "last-event-id"]);
    }
}
