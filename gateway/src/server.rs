//! The gateway on a cluster.

use crate::cluster_access::ClusterAccess;
use crate::connections::{Limits, serve_until};
use crate::metrics::{self, Metrics};
use crate::session::Gateway;
use crate::settings::Settings;
use axum::middleware::from_fn_with_state;
use bloomery_embed::{ClusterRuntime, Error};
use kube::{Client, Config};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The time that requests in progress may take after SIGTERM. Streams of events do not end by themselves: their clients connect to another
/// replica.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(5);

/// The number of connections for health and metrics.
const HEALTH_CONNECTIONS: usize = 64;

/// The time without a byte after which a review of a token fails.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(30);

/// Runs the gateway until SIGTERM or SIGINT.
///
/// # Errors
/// If the gateway cannot start, or a server fails.
pub async fn run(settings: Settings) -> Result<(), Error> {
    let mut terminate = signal(SignalKind::terminate()).map_err(io_error("cannot listen for SIGTERM"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(io_error("cannot listen for SIGINT"))?;
    let stopping = CancellationToken::new();
    let mut servers = start(settings, &stopping).await?;
    let end = tokio::select! {
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
        Some(ended) = servers.join_next() => ended.map_err(io::Error::other).map_err(io_error("a server failed")),
    };
    tracing::info!("stopping");
    stopping.cancel();
    let drained = async { while servers.join_next().await.is_some() {} };
    if tokio::time::timeout(SHUTDOWN_TIMEOUT, drained).await.is_err() {
        tracing::info!("streams in progress are closed");
    }
    end
}

/// Starts the servers, which end when `stopping` is cancelled.
async fn start(settings: Settings, stopping: &CancellationToken) -> Result<JoinSet<()>, Error> {
    let Settings { log_filter: _, api_addr, http_addr, default_namespace, worker_image, proxy } = settings;
    let mut config = Config::infer()
        .await
        .map_err(|error| Error::failed(format!("cannot find the configuration of the API server: {error}")))?;
    let runtime = ClusterRuntime::new(&config, worker_image)?;
    config.read_timeout = Some(REVIEW_TIMEOUT);
    config.reset_reader_on_write = true;
    let client = Client::try_from(config)
        .map_err(|error| Error::failed(format!("cannot create a client of the API server: {error}")))?;
    let access = ClusterAccess::new(client, proxy.into());
    let metrics = Arc::new(Metrics::new());
    let api = crate::router(Gateway { runtime, access, tenant: default_namespace })
        .layer(from_fn_with_state(Arc::clone(&metrics), metrics::count));
    let mut servers = JoinSet::new();
    let limits = Limits::for_process();
    let health_limits = Limits { connections: limits.connections.min(HEALTH_CONNECTIONS), ..limits };
    for (address, routes, limits) in [(http_addr, metrics::router(metrics), health_limits), (api_addr, api, limits)] {
        let listener = bind(address).await.map_err(io_error(format!("{address} cannot be listened on")))?;
        servers.spawn(serve_until(listener, routes, limits, stopping.clone()));
    }
    tracing::info!(%api_addr, "serving");
    Ok(servers)
}

/// Listens at an address. `[::]` means all addresses of IPv6 and IPv4, or all of IPv4 if the node has no IPv6.
async fn bind(address: SocketAddr) -> io::Result<TcpListener> {
    match TcpListener::bind(address).await {
        Err(_) if address.ip() == Ipv6Addr::UNSPECIFIED => {
            TcpListener::bind((Ipv4Addr::UNSPECIFIED, address.port())).await
        }
        bound => bound,
    }
}

fn io_error(what: impl Into<String>) -> impl FnOnce(io::Error) -> Error {
    let what = what.into();
    move |error| Error::failed(format!("{what}: {error}"))
}
