//! Serves connections. Their number, their buffers and their times are limited, so that no client takes the server from the others.

use crate::problem::Problem;
use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt::set_tcp_user_timeout;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::future::ready;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// The pause after a connection could not be accepted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The most connections of a server, if it may open enough files.
const MAX_CONNECTIONS: usize = 4096;

/// The most accepted connections that wait for a place. Further ones wait in the kernel.
const MAX_WAITING: usize = 64;

/// The largest headers of a request, in bytes. A response waits for its client once it has as many bytes that are not sent.
const MAX_BUFFER_BYTES: usize = 16 * 1024;

/// The limits of the connections of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The number of connections. Further clients wait until one of them ends.
    pub connections: usize,
    /// The time for which a further client waits. Then its requests are refused.
    pub wait: Duration,
    /// The time for the headers of a request, from the start of the connection or the end of the request before.
    pub headers: Duration,
    /// The time after which a client is disconnected that does not read what it was sent, in milliseconds.
    pub stalled_ms: u32,
}

impl Limits {
    /// Raises the limit of open files of this process to the most that it may have. Returns limits that need half of them, because Jobs
    /// and the requests to the API server of a cluster need the others.
    pub fn for_process() -> Self {
        let allowed = getrlimit(Resource::Nofile);
        // The limit before is valid too.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: allowed.maximum, ..allowed });
        Self::for_open_files(getrlimit(Resource::Nofile).current)
    }

    /// Returns the limits for a number of open files; none for any number.
    fn for_open_files(files: Option<u64>) -> Self {
        let half = files.and_then(|files| usize::try_from(files / 2).ok());
        let connections = half.map_or(MAX_CONNECTIONS, |half| half.clamp(1, MAX_CONNECTIONS));
        // Clients without a request have lost their places before a further client is refused.
        let (headers, wait) = (Duration::from_secs(10), Duration::from_secs(15));
        Self { connections, wait, headers, stalled_ms: 60_000 }
    }
}

/// Serves the connections of a listener until the future is dropped. The connections that it has accepted go on.
pub async fn serve(listener: TcpListener, routes: Router, limits: Limits) {
    serve_until(listener, routes, limits, CancellationToken::new()).await;
}

/// Serves the connections of a listener until `stopping` is cancelled. Returns after the requests in progress, without further ones.
pub(crate) async fn serve_until(listener: TcpListener, routes: Router, limits: Limits, stopping: CancellationToken) {
    let refusal = Router::new().fallback(|| ready(Problem::too_many_connections()));
    let (places, waiting) = (Arc::new(Semaphore::new(limits.connections)), Arc::new(Semaphore::new(MAX_WAITING)));
    let server = Arc::new(Server { routes, refusal, limits, places, stopping });
    loop {
        let (stream, turn) = tokio::select! {
            accepted = accept(&listener, &waiting) => accepted,
            () = server.stopping.cancelled() => break,
        };
        let server = Arc::clone(&server);
        tokio::spawn(async move { server.admit(stream, turn).await });
    }
    let all = u32::try_from(limits.connections).unwrap_or(u32::MAX);
    // Each connection has a place until it ends. This fails only for a closed semaphore.
    let _ = server.places.acquire_many(all).await;
}

/// Accepts a connection, once it can wait for a place.
async fn accept(listener: &TcpListener, waiting: &Arc<Semaphore>) -> (TcpStream, Option<OwnedSemaphorePermit>) {
    // This fails only for a closed semaphore.
    let turn = Arc::clone(waiting).acquire_owned().await.ok();
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return (stream, turn),
            // The client has gone, or the process has no file descriptors left. Connections that end release some.
            Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
        }
    }
}

/// The server of a listener.
struct Server {
    routes: Router,
    /// Answers all requests of a client that has no place.
    refusal: Router,
    limits: Limits,
    /// The places of the connections.
    places: Arc<Semaphore>,
    stopping: CancellationToken,
}

impl Server {
    /// Serves a connection once it has a place. If it gets none in time, refuses its request.
    async fn admit(&self, stream: TcpStream, turn: Option<OwnedSemaphorePermit>) {
        let place = Arc::clone(&self.places).acquire_owned();
        let place = tokio::select! {
            place = tokio::time::timeout(self.limits.wait, place) => place,
            () = self.stopping.cancelled() => return,
        };
        if place.is_ok() {
            drop(turn);
            self.serve(stream, self.routes.clone(), true).await;
        } else {
            tracing::warn!(connections = self.limits.connections, "a client is refused: all connections are in use");
            self.serve(stream, self.refusal.clone(), false).await;
        }
    }

    /// Serves a connection until it ends. With `keep_alive`, it may have several requests.
    async fn serve(&self, stream: TcpStream, routes: Router, keep_alive: bool) {
        // Without this option, an event waits until the client has acknowledged the one before. Both options fail if the client has gone.
        let _ = stream.set_nodelay(true);
        let _ = set_tcp_user_timeout(&stream, self.limits.stalled_ms);
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.limits.headers)
            .max_buf_size(MAX_BUFFER_BYTES)
            .keep_alive(keep_alive)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes));
        let mut connection = pin!(connection);
        tokio::select! {
            // It fails if the client has gone, has sent no valid request, or was too slow. The server can do nothing about it.
            _ = connection.as_mut() => return,
            () = self.stopping.cancelled() => {}
        }
        connection.as_mut().graceful_shutdown();
        let _ = connection.await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::body::{Body, Bytes};
    use axum::routing::get;
    use futures::stream;
    use rstest::rstest;
    use std::convert::Infallible;
    use std::net::{Ipv4Addr, SocketAddr};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::sync::Notify;

    /// The time for events that happen soon.
    const TIMEOUT: Duration = Duration::from_secs(30);

    /// Starts a server of one connection, with a short response and an endless one.
    async fn start(limits: Limits) -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let endless = async || Body::from_stream(stream::repeat(Ok::<_, Infallible>(Bytes::from(vec![b'x'; 4096]))));
        let routes = Router::new().route("/", get(async || "Hello.")).route("/endless", get(endless));
        tokio::spawn(serve(listener, routes, limits));
        address
    }

    /// Sends the beginning of a request.
    async fn begin(address: SocketAddr, text: &str) -> TcpStream {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        stream
    }

    /// Returns the response to a request, after which the client closes the connection.
    async fn response(address: SocketAddr) -> String {
        let mut stream = begin(address, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
        let mut text = String::new();
        tokio::time::timeout(TIMEOUT, stream.read_to_string(&mut text)).await.unwrap().unwrap();
        text
    }

    /// The other limit of each case is longer than the test waits.
    #[rstest]
    #[case::silent("", Duration::from_millis(200), 600_000)]
    #[case::unfinished_headers("GET / HTTP/1.1\r\nHost: x\r\n", Duration::from_millis(200), 600_000)]
    #[case::reads_nothing("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n", Duration::from_mins(10), 200)]
    #[tokio::test]
    async fn a_client_that_does_nothing_loses_its_place(
        #[case] request: &str,
        #[case] headers: Duration,
        #[case] stalled_ms: u32,
    ) {
        let address = start(Limits { connections: 1, wait: TIMEOUT, headers, stalled_ms }).await;
        let _held = begin(address, request).await;
        assert!(response(address).await.ends_with("Hello."));
    }

    #[tokio::test]
    async fn further_clients_wait_for_a_place() {
        let address = start(Limits { connections: 1, ..Limits::for_open_files(None) }).await;
        let mut held = begin(address, "GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(held.read(&mut [0; 16]).await.unwrap() > 0);
        let mut waiting = std::pin::pin!(response(address));
        tokio::select! {
            text = &mut waiting => panic!("{text}"),
            () = tokio::time::sleep(Duration::from_millis(100)) => {}
        }
        drop(held);
        assert!(waiting.await.ends_with("Hello."));
    }

    #[tokio::test]
    async fn a_client_that_gets_no_place_is_refused_with_the_reason() {
        let wait = Duration::from_millis(100);
        let address = start(Limits { connections: 1, wait, ..Limits::for_open_files(None) }).await;
        let mut held = begin(address, "GET /endless HTTP/1.1\r\nHost: x\r\n\r\n").await;
        assert!(held.read(&mut [0; 16]).await.unwrap() > 0);
        let text = response(address).await;
        for part in ["HTTP/1.1 503 ", "retry-after: ", "application/problem+json", "all its connections are in use"] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[tokio::test]
    async fn a_server_that_stops_completes_the_requests_in_progress() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let (begun, released) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let signals = (Arc::clone(&begun), Arc::clone(&released));
        let slow = move || {
            let (begun, released) = signals.clone();
            async move {
                begun.notify_one();
                released.notified().await;
                "Hello."
            }
        };
        let stopping = CancellationToken::new();
        let limits = Limits::for_open_files(None);
        let server = serve_until(listener, Router::new().route("/", get(slow)), limits, stopping.clone());
        let server = tokio::spawn(server);
        // A connection without a request does not delay the end.
        let _idle = begin(address, "").await;
        let client = tokio::spawn(response(address));
        begun.notified().await;
        stopping.cancel();
        released.notify_one();
        assert!(client.await.unwrap().ends_with("Hello."));
        tokio::time::timeout(TIMEOUT, server).await.unwrap().unwrap();
        assert!(TcpStream::connect(address).await.is_err(), "it does not listen");
    }

    #[rstest]
    #[case::unlimited(None, MAX_CONNECTIONS)]
    #[case::many(Some(1 << 20), MAX_CONNECTIONS)]
    #[case::few(Some(1024), 512)]
    #[case::none(Some(0), 1)]
    fn half_of_the_files_are_for_connections(#[case] files: Option<u64>, #[case] connections: usize) {
        assert_eq!(Limits::for_open_files(files).connections, connections);
    }
}
