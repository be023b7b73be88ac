//! Starts the parts of one replica, and stops them in order.

use crate::apply::Applier;
use crate::approval::void_pace::VoidPace;
use crate::caches::{Caches, Feed, WATCH_SECONDS};
use crate::context::Context;
use crate::events::Events;
use crate::health::{self, Liveness, Readiness};
use crate::leader::{self, Leadership};
use crate::metrics::Metrics;
use crate::pod_seals::PodSeals;
use crate::recent_revisions::RecentRevisions;
use crate::server_tokens::ServerTokens;
use crate::settings::Settings;
use crate::status::Statuses;
use crate::{approval, client, job, listen, model, report, skill};
use axum::http::StatusCode;
use futures::stream::StreamExt;
use kube::client::retry::RetryPolicy;
use kube::{Client, Config};
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The time that requests and reconciles in progress may take after SIGTERM. The pod's grace period is longer.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(20);

/// The time without a byte after which a watch fails and is opened again. The API server ends each watch after
/// [`WATCH_SECONDS`](crate::caches::WATCH_SECONDS), so only a half-open connection is silent for longer.
const WATCH_READ_TIMEOUT: Duration = Duration::from_secs(WATCH_SECONDS as u64 + 15);

/// The time without a byte after which any other request fails.
const REQUEST_READ_TIMEOUT: Duration = Duration::from_secs(30);

/// The reason why the operator failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address of the API server is not configured.
    #[error("cannot find the configuration of the API server: {0}")]
    Config(#[from] kube::config::InferConfigError),
    /// No client can be created for the configured API server.
    #[error("cannot create a client of the API server: {0}")]
    Client(#[from] kube::Error),
    /// A socket or a signal handler could not be set up, or a server failed.
    #[error("{what}: {source}")]
    Io {
        /// The failed operation.
        what: String,
        /// The I/O error.
        source: std::io::Error,
    },
}

/// Runs the operator until SIGTERM or SIGINT.
///
/// # Errors
/// Returns an error if the operator cannot start, or if one of its parts fails. Then the kubelet restarts the operator.
pub async fn run(settings: Settings) -> Result<(), Error> {
    // The result is ignored: a provider that is installed already is the same one.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut terminate = signal(SignalKind::terminate()).map_err(io("cannot listen for SIGTERM"))?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(io("cannot listen for SIGINT"))?;
    let config = Config::infer().await?;
    let (metrics, liveness) = (Arc::new(Metrics::new()), Liveness::default());
    let clients = Clients::new(&config, &metrics)?;
    let (context, feed, leads_sender) =
        create_context(clients.requests, (&clients.watches, &liveness), settings, metrics);

    let stopping = CancellationToken::new();
    let release_lease = CancellationToken::new();
    // Fills the caches until it is aborted.
    let feeding = tokio::spawn(feed.for_each(|()| async {}));
    let competing = tokio::spawn({
        let (context, release_lease) = (context.clone(), release_lease.clone());
        async move { leader::compete(clients.lease, &context.settings, leads_sender, &context.metrics, release_lease).await }
    });
    let mut parts = start(&context, liveness, &stopping)?;
    tracing::info!(version = env!("CARGO_PKG_VERSION"), pod = context.settings.pod_name, "started");

    let end = tokio::select! {
        _ = terminate.recv() => Ok(()),
        _ = interrupt.recv() => Ok(()),
        Some(ended) = parts.join_next() => ended.unwrap_or_else(|panic| Err(Error::Io {
            what: "a part of the operator failed".to_owned(),
            source: std::io::Error::other(panic),
        })),
    };
    tracing::info!("stopping");
    stopping.cancel();
    let drained = tokio::time::timeout(SHUTDOWN_TIMEOUT, async { while parts.join_next().await.is_some() {} }).await;
    if drained.is_err() {
        tracing::warn!("requests or reconciles in progress did not end in time, and are aborted");
    }
    // The lease is released last: another replica may lead only when this one has nothing in progress.
    drop(parts);
    release_lease.cancel();
    let _ = tokio::time::timeout(leader::LEASE_REQUEST_TIMEOUT * 2, competing).await;
    feeding.abort();
    end
}

/// The clients of the API server. Each has its own connections and its own timeout.
struct Clients {
    lease: Client,
    watches: Client,
    requests: Client,
}

impl Clients {
    fn new(config: &Config, metrics: &Arc<Metrics>) -> Result<Self, kube::Error> {
        let count = {
            let metrics = metrics.clone();
            move |status: Option<StatusCode>| metrics.count_api_response(status)
        };
        Ok(Self {
            lease: client::create(
                config,
                leader::LEASE_REQUEST_TIMEOUT,
                Some(RetryPolicy::server_retry()),
                count.clone(),
            )?,
            // A watch has a backoff of its own, and each refusal counts as progress.
            watches: client::create(config, WATCH_READ_TIMEOUT, None, count.clone())?,
            requests: client::create(config, REQUEST_READ_TIMEOUT, Some(RetryPolicy::server_retry()), count)?,
        })
    }
}

fn create_context(
    client: Client,
    (watch_client, liveness): (&Client, &Liveness),
    settings: Settings,
    metrics: Arc<Metrics>,
) -> (Arc<Context>, Feed, tokio::sync::watch::Sender<bool>) {
    let (caches, feed) = Caches::new(watch_client, &settings.namespaces, liveness);
    let (leads_sender, leadership) = Leadership::channel();
    let context = Context {
        caches,
        applier: Applier::new(client.clone(), metrics.clone()),
        statuses: Statuses::new(client.clone(), metrics.clone()),
        void_pace: VoidPace::default(),
        events: Events::new(client.clone(), &settings.pod_name),
        metrics,
        report_ca_bundle: report::CaBundle::default(),
        recent_revisions: RecentRevisions::default(),
        pod_seals: PodSeals::default(),
        server_tokens: ServerTokens::default(),
        readiness: Readiness::default(),
        leadership,
        client,
        settings,
    };
    (Arc::new(context), feed, leads_sender)
}

/// Starts the parts of the operator. They end when `stopping` is cancelled. If a part ends earlier, the operator ends.
fn start(
    context: &Arc<Context>,
    liveness: Liveness,
    stopping: &CancellationToken,
) -> Result<JoinSet<Result<(), Error>>, Error> {
    let address = context.settings.http_addr;
    let listener = listen::bind(address)
        .map_err(io(format!("health and metrics cannot be served at {address} (BLOOMERY_HTTP_ADDR)")))?;
    let mut parts = JoinSet::new();
    let health = health::serve(
        listener,
        health::router(liveness, context.readiness.clone(), context.metrics.clone()),
        stopping.clone(),
    );
    parts.spawn(async move { health.await.map_err(io("health and metrics cannot be served")) });
    let reports = report::serve(context.clone(), stopping.clone());
    parts.spawn(async move { reports.await.map_err(io("reports cannot be accepted")) });
    parts.spawn(mark_caches_ready(context.clone(), stopping.clone()));
    parts.spawn(run_controllers(context.clone(), stopping.clone()));
    Ok(parts)
}

/// Marks the caches as ready once they are filled.
async fn mark_caches_ready(context: Arc<Context>, stopping: CancellationToken) -> Result<(), Error> {
    tokio::select! {
        () = context.caches.wait_until_synced() => {
            context.readiness.caches.set();
            tracing::info!("the caches are filled");
            stopping.cancelled().await;
        }
        () = stopping.cancelled() => {}
    }
    Ok(())
}

/// Runs the controllers while this replica leads. When it stops leading, they are aborted.
async fn run_controllers(context: Arc<Context>, stopping: CancellationToken) -> Result<(), Error> {
    loop {
        tokio::select! {
            () = context.leadership.wait_until_gained() => {}
            () = stopping.cancelled() => return Ok(()),
        }
        // Dropping the set aborts its tasks.
        let mut controllers = JoinSet::new();
        controllers.spawn(skill::run(context.clone(), stopping.clone()));
        controllers.spawn(model::run(context.clone(), stopping.clone()));
        controllers.spawn(job::run(context.clone(), stopping.clone()));
        controllers.spawn(approval::orphans::run(context.clone(), stopping.clone()));
        tokio::select! {
            ended = wait_for_controllers(&mut controllers) => return ended,
            () = context.leadership.wait_until_lost() => {}
        }
    }
}

/// Waits for all controllers; they end only at the shutdown.
async fn wait_for_controllers(controllers: &mut JoinSet<()>) -> Result<(), Error> {
    while let Some(ended) = controllers.join_next().await {
        ended.map_err(std::io::Error::other).map_err(io("a controller failed"))?;
    }
    Ok(())
}

fn io(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
    let what = what.into();
    move |source| Error::Io { what, source }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::Router;
    use axum::extract::State;
    use axum::http::{Request, Uri};
    use axum::serve::ListenerExt;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use tokio::net::{TcpListener, TcpSocket};

    /// Serves until the runtime of the test ends. Returns the URL, and the number of accepted connections.
    async fn serve(router: Router) -> (String, Arc<AtomicUsize>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let accepted = Arc::<AtomicUsize>::default();
        let count = accepted.clone();
        let listener = listener.tap_io(move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
        tokio::spawn(async { axum::serve(listener, router).await });
        (url, accepted)
    }

    fn clients(url: &str, metrics: &Arc<Metrics>) -> Clients {
        Clients::new(&Config::new(url.parse().unwrap()), metrics).unwrap()
    }

    async fn request(client: &Client, path: &str) -> Result<String, kube::Error> {
        client.request_text(Request::get(path).body(Vec::new()).unwrap()).await
    }

    /// Answers requests for `/fails` with an error. Refuses the first request for `/busy`, and a client repeats such a request.
    async fn answer(State(is_busy): State<Arc<AtomicBool>>, uri: Uri) -> (StatusCode, &'static str) {
        let code = match uri.path() {
            "/fails" => StatusCode::INTERNAL_SERVER_ERROR,
            "/busy" if is_busy.swap(false, Ordering::Relaxed) => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::OK,
        };
        (code, "{}")
    }

    #[tokio::test]
    async fn every_client_has_its_own_connections_and_the_responses_of_each_are_counted() {
        let (url, accepted) = serve(Router::new().fallback(|| async { "{}" })).await;
        let metrics = Arc::new(Metrics::new());
        let Clients { lease, watches, requests } = clients(&url, &metrics);
        for client in [lease, requests, watches] {
            request(&client, "/version").await.unwrap();
            // The connection becomes idle, so that a clone of the client would use it again.
            for _ in 0..1000 {
                tokio::task::yield_now().await;
            }
        }
        assert!(metrics.to_text().contains(r#"bloomery_api_responses_total{code="200"} 3"#), "{}", metrics.to_text());
        assert_eq!(accepted.load(Ordering::Relaxed), 3);
    }

    #[tokio::test]
    async fn each_response_and_each_request_without_one_is_counted() {
        let is_busy = Arc::new(AtomicBool::new(true));
        let (url, _) = serve(Router::new().fallback(answer).with_state(is_busy)).await;
        let metrics = Arc::new(Metrics::new());
        let client = clients(&url, &metrics).requests;
        request(&client, "/busy").await.unwrap();
        request(&client, "/fails").await.unwrap_err();
        // The socket keeps its port, and does not listen.
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let closed = format!("http://{}", socket.local_addr().unwrap());
        request(&clients(&closed, &metrics).requests, "/version").await.unwrap_err();
        let text = metrics.to_text();
        for code in ["200", "500", "503", "error"] {
            let line = format!("bloomery_api_responses_total{{code=\"{code}\"}} 1\n");
            assert!(text.contains(&line), "{line} is not in\n{text}");
        }
    }
}
