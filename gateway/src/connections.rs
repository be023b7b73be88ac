//! Serves connections. Their number, their buffers and their times are limited, so that no client takes the server from the others.

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use rustix::net::sockopt::set_tcp_user_timeout;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

/// The pause after a connection could not be accepted.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// The most connections of a server, if it may open enough files.
const MAX_CONNECTIONS: usize = 4096;

/// The largest headers of a request, in bytes. A response waits for its client once it has as many bytes that are not sent.
const MAX_BUFFER_BYTES: usize = 16 * 1024;

/// The limits of the connections of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The number of connections. Further clients wait until one of them ends.
    pub connections: usize,
    /// The time for the headers of a request, from the start of the connection or the end of the request before.
    pub headers: Duration,
    /// The time after which a client is disconnected that does not read what it was sent, in milliseconds.
    pub stalled_ms: u32,
}

impl Limits {
    /// Raises the limit of open files of this process to the most that it may have. Returns limits that need half of them, because Jobs
    /// need the others.
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
        Self { connections, headers: Duration::from_secs(10), stalled_ms: 60_000 }
    }
}

/// Serves the connections of a listener until the future is dropped. The connections that it has accepted go on.
pub async fn serve(listener: TcpListener, routes: Router, limits: Limits) {
    let places = Arc::new(Semaphore::new(limits.connections));
    loop {
        // This fails only for a closed semaphore.
        let place = Arc::clone(&places).acquire_owned().await.ok();
        match listener.accept().await {
            Ok((stream, _)) => {
                let routes = routes.clone();
                tokio::spawn(async move {
                    serve_connection(stream, routes, limits).await;
                    drop(place);
                });
            }
            // The client has gone, or the process has no file descriptors left. Connections that end release some.
            Err(_) => tokio::time::sleep(ACCEPT_RETRY_DELAY).await,
        }
    }
}

/// Serves a connection until it ends.
async fn serve_connection(stream: TcpStream, routes: Router, limits: Limits) {
    // Without this option, an event waits until the client has acknowledged the one before. Both options fail if the client has gone.
    let _ = stream.set_nodelay(true);
    let _ = set_tcp_user_timeout(&stream, limits.stalled_ms);
    // It fails if the client has gone, has sent no valid request, or was too slow. The server can do nothing about it.
    let _ = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.headers)
        .max_buf_size(MAX_BUFFER_BYTES)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(routes))
        .await;
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
        let address = start(Limits { connections: 1, headers, stalled_ms }).await;
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

    #[rstest]
    #[case::unlimited(None, MAX_CONNECTIONS)]
    #[case::many(Some(1 << 20), MAX_CONNECTIONS)]
    #[case::few(Some(1024), 512)]
    #[case::none(Some(0), 1)]
    fn half_of_the_files_are_for_connections(#[case] files: Option<u64>, #[case] connections: usize) {
        assert_eq!(Limits::for_open_files(files).connections, connections);
    }
}
