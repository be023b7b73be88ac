//! Floods of connections over real sockets: a hostile tenant at 127.0.0.1, and the workers of an honest one at 127.0.0.2.

use super::tests::{review, token_with};
use super::*;
use crate::job::fixtures::api::FakeApi;
use crate::job::fixtures::{self, status};
use bloomery_crds::outcome::Phase;
use futures::future::join_all;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpSocket;
use tokio_rustls::TlsConnector;

/// The connections that the hostile tenant keeps open or tries to open.
const HOSTILE: usize = 5_000;

/// The pause of each hostile client between two connections or requests.
const HOSTILE_PAUSE: Duration = Duration::from_secs(1);

/// The workers of the honest tenant.
const WORKERS: usize = 20;

/// The reports of each of them.
const ROUNDS: u64 = 40;

/// The time between two reports of a worker. It is shorter than that of a real worker.
const ROUND: Duration = Duration::from_millis(500);

/// The time limit of an answer to the honest tenant.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(1);

/// The endpoint on a real socket.
#[derive(Clone)]
struct Endpoint {
    address: SocketAddr,
    tls: TlsConnector,
}

/// A worker of the honest tenant.
struct Worker {
    name: String,
    token: String,
}

/// Stores a Job of the honest tenant, and accepts the token of its worker.
fn worker(api: &FakeApi, number: usize) -> Worker {
    let (name, pod_uid) = (format!("refund-{number}"), format!("pod-{number}"));
    let mut job = fixtures::job();
    job.metadata.name = Some(name.clone());
    job.metadata.uid = Some(name.clone());
    job.status = Some(status(1, Phase::Starting));
    let mut job = serde_json::to_value(&job).unwrap();
    job["status"]["attempt"]["podUID"] = json!(pod_uid);
    api.put(&format!("/apis/bloomery.dev/v1alpha1/namespaces/acme/skilljobs/{name}"), job);
    let token = token_with(&name);
    api.review_token(&token, review("acme", &pod_uid));
    Worker { name, token }
}

/// The text of a request.
fn request(token: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "POST {PATH} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
}

impl Endpoint {
    /// Serves the endpoint for the objects that are stored now.
    async fn start(api: &FakeApi, max_connections: usize) -> Self {
        let (acceptor, ca) = bloomery_testkit::tls::localhost();
        let listener = listen::bind(SocketAddr::from(([0; 4], 0))).unwrap();
        let address = SocketAddr::from(([127, 0, 0, 1], listener.local_addr().unwrap().port()));
        let router = router(Arc::new(Service::new(api.operator().await, CancellationToken::new())), TIMEOUTS);
        let connections = Connections::new(max_connections);
        tokio::spawn(async move {
            accept_connections(listener, acceptor, router, &connections, &CancellationToken::new()).await;
        });
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(ca.as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        Self { address, tls: TlsConnector::from(Arc::new(config)) }
    }

    /// Sends a report over a new connection of the honest tenant. Returns the time until it was accepted.
    async fn report(&self, worker: &Worker, events: u64) -> Duration {
        let mut report = fixtures::report(1, 1, events, Phase::Running);
        report.job.name.clone_from(&worker.name);
        report.job.uid.clone_from(&worker.name);
        let request = request(&worker.token, &serde_json::to_string(&report).unwrap());
        let started = Instant::now();
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(SocketAddr::from(([127, 0, 0, 2], 0))).unwrap();
        let mut stream = self.tls.connect(localhost(), socket.connect(self.address).await.unwrap()).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = [0; 1024];
        let length = stream.read(&mut answer).await.unwrap();
        let took = started.elapsed();
        let answer = String::from_utf8_lossy(&answer[..length]).into_owned();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        took
    }
}

fn localhost() -> ServerName<'static> {
    ServerName::try_from("localhost").unwrap()
}

#[tokio::test]
async fn an_address_that_takes_all_connections_does_not_keep_out_another() {
    let api = FakeApi::default();
    let worker = worker(&api, 1);
    let endpoint = Endpoint::start(&api, 8).await;
    let mut hostile = Vec::new();
    for _ in 0..20 {
        hostile.push(TcpStream::connect(endpoint.address).await.unwrap());
    }
    endpoint.report(&worker, 3).await;
    let oldest = hostile.first_mut().unwrap();
    assert_eq!(oldest.read(&mut [0]).await.unwrap_or_default(), 0, "the oldest connection was closed for the report");
    assert!(hostile[1..8].iter().all(|stream| stream.try_read(&mut [0]).is_err()), "the others are open");
}

async fn until_closed(mut stream: impl AsyncRead + Unpin) -> std::io::Result<()> {
    while stream.read(&mut [0; 1024]).await? > 0 {}
    Ok(())
}

/// The counts of the hostile tenant's connections and false tokens.
#[derive(Default)]
struct Attack {
    connections: AtomicUsize,
    false_tokens: AtomicUsize,
}

impl Attack {
    /// Opens a connection again and again. A third of the clients sends nothing, a third half a request, and a third false tokens.
    async fn repeat(&self, endpoint: &Endpoint, client: usize) {
        loop {
            if let Ok(stream) = TcpStream::connect(endpoint.address).await {
                self.connections.fetch_add(1, Ordering::Relaxed);
                // An error means that the endpoint has closed the connection.
                let _ = self.hold(endpoint, client, stream).await;
            }
            tokio::time::sleep(HOSTILE_PAUSE).await;
        }
    }

    async fn hold(&self, endpoint: &Endpoint, client: usize, stream: TcpStream) -> std::io::Result<()> {
        if client.is_multiple_of(3) {
            return until_closed(stream).await;
        }
        let mut stream = endpoint.tls.connect(localhost(), stream).await?;
        if client % 3 == 1 {
            stream.write_all(b"POST /v1/reports HTTP/1.1\r\nHost: localhost\r\n").await?;
            return until_closed(stream).await;
        }
        let mut answer = [0; 1024];
        loop {
            let number = self.false_tokens.fetch_add(1, Ordering::Relaxed);
            stream.write_all(request(&token_with(&format!("false{number}")), "{}").as_bytes()).await?;
            if stream.read(&mut answer).await? == 0 {
                return Ok(());
            }
            tokio::time::sleep(HOSTILE_PAUSE).await;
        }
    }
}

/// Runs the attack in a thread of its own until `stop` is cancelled.
fn start_attack(endpoint: &Endpoint, stop: &CancellationToken) -> (Arc<Attack>, std::thread::JoinHandle<()>) {
    let attack = Arc::new(Attack::default());
    let (endpoint, stop, shared) = (endpoint.clone(), stop.clone(), attack.clone());
    let thread = std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            tokio::select! {
                _ = join_all((0..HOSTILE).map(|client| shared.repeat(&endpoint, client))) => {}
                () = stop.cancelled() => {}
            }
        });
    });
    (attack, thread)
}

/// The resident memory of this process in MiB.
fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a benchmark for a quiet machine: make bench ONLY=reports"]
async fn reports_are_answered_within_a_second_while_another_tenant_opens_5000_connections() {
    let files = open_files::raise_limit();
    assert!(
        files.is_none_or(|files| files > 12_000),
        "the limit of open files is {files:?}, and the bench needs 12000"
    );
    let api = FakeApi::default();
    api.review_tokens(json!({ "authenticated": false }));
    let workers: Vec<Worker> = (0..WORKERS).map(|number| worker(&api, number)).collect();
    let endpoint = Endpoint::start(&api, MAX_CONNECTIONS).await;
    let (requests_before, memory_before, started) = (api.requests().len(), resident_mib(), Instant::now());
    let stop = CancellationToken::new();
    let (attack, thread) = start_attack(&endpoint, &stop);
    while attack.connections.load(Ordering::Relaxed) < HOSTILE {
        tokio::time::sleep(HOSTILE_PAUSE / 10).await;
    }
    let mut times = Vec::new();
    for round in 0..ROUNDS {
        times.extend(join_all(workers.iter().map(|worker| endpoint.report(worker, 3 + round))).await);
        tokio::time::sleep(ROUND).await;
    }
    let (memory, seconds) = (resident_mib(), started.elapsed().as_secs());
    stop.cancel();
    thread.join().unwrap();
    times.sort_unstable();
    let (median, p99, longest) = (times[times.len() / 2], times[times.len() * 99 / 100], times[times.len() - 1]);
    let (reviews, requests) = (api.reviews(), api.requests().len() - requests_before);
    let (opened, sent) = (attack.connections.load(Ordering::Relaxed), attack.false_tokens.load(Ordering::Relaxed));
    println!("{HOSTILE} hostile clients opened {opened} connections and sent {sent} false tokens in {seconds} s");
    println!("{} reports of another tenant: p50 {median:?}, p99 {p99:?}, longest {longest:?}", times.len());
    println!(
        "requests to the API server: {requests}, of which {reviews} are reviews of tokens; reports cause the others"
    );
    println!("memory of the process with both ends of all connections: {memory_before} MiB before, {memory} MiB");
    assert!(sent > 1_000, "the attack sends false tokens");
    assert!(longest <= MAX_ANSWER_TIME, "a report took {longest:?}");
    // Each address begins a window of 5 s with 64 reviews at most. Valid tokens are reviewed once a minute.
    let windows = u32::try_from(seconds / 5 + 1).unwrap();
    let valid = u32::try_from(WORKERS).unwrap() * u32::try_from(seconds / 60 + 1).unwrap();
    assert!(reviews <= windows * crate::report::review_limit::MAX_UNPROVEN + valid, "{reviews} reviews in {seconds} s");
}
