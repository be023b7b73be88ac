//! The gateway of the release, and its clients.

use std::net::{IpAddr, SocketAddr, TcpListener};
use std::panic::{AssertUnwindSafe, resume_unwind};
use std::process::{Child, Command};

use bloomery_testkit::json::typed;
use futures::FutureExt;
use k8s_openapi::api::core::v1::{Pod, Service, ServiceAccount};
use kube::Api;
use kube::api::ListParams;
use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::cluster::Cluster;
use super::command;
use super::objects::is_ready;
use super::operator::{self, NAMESPACE, RELEASE};
use super::reports::request_token;
use super::tenant::Tenant;
use super::wait::{PATIENCE, eventually};

/// The gateway's own account.
pub const ACCOUNT: &str = "system:serviceaccount:bloomery-system:bloomery-gateway";

/// The port of the gateway's pods.
const POD_PORT: u16 = 8080;

/// The port of the gateway's Service.
const SERVICE_PORT: u16 = 80;

/// The header with the namespace of a request.
pub const NAMESPACE_HEADER: &str = "Bloomery-Namespace";

/// A client of the gateway with the token of an account.
pub struct GatewayClient {
    client: reqwest::Client,
    base: String,
    token: String,
    namespace: String,
    /// The headers that an authenticating proxy adds.
    forwarded: Vec<(&'static str, String)>,
}

/// A gateway on this machine, for the cluster. It is stopped when this value is dropped.
pub struct LocalGateway {
    process: Child,
    url: String,
    namespace: String,
}

/// A stream of server-sent events.
pub struct EventStream {
    response: reqwest::Response,
    received: Vec<u8>,
}

/// An event of a Job, as a client receives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SentEvent {
    /// The number of the event.
    pub id: u64,
    /// The name of the event.
    pub kind: String,
}

/// Runs `meanwhile` with two ready pods of the gateway. The release is installed without it afterwards, also if `meanwhile` fails.
///
/// The caller must be a [`story_alone`](super::story_alone).
pub async fn with_gateway<T>(cluster: &Cluster, meanwhile: impl AsyncFnOnce() -> T) -> T {
    with_gateway_and(cluster, &[], meanwhile).await
}

/// Does the same as [`with_gateway`], with further values of the chart, such as `gateway.namespace=acme`.
///
/// The caller must be a [`story_alone`](super::story_alone).
pub async fn with_gateway_and<T>(cluster: &Cluster, values: &[&str], meanwhile: impl AsyncFnOnce() -> T) -> T {
    let mut on = vec!["--set", "gateway.enabled=true", "--set", "gateway.replicas=2"];
    on.extend(values.iter().flat_map(|value| ["--set", *value]));
    command::run(&mut command::script("hack/install", &on));
    let done = AssertUnwindSafe(meanwhile()).catch_unwind().await;
    command::run(&mut command::script("hack/install", &[]));
    operator::until_rolled_out(cluster).await;
    done.unwrap_or_else(|failure| resume_unwind(failure))
}

/// Returns the ready pods of the gateway.
pub async fn pods(cluster: &Cluster) -> Vec<Pod> {
    let own = "app.kubernetes.io/instance=bloomery,app.kubernetes.io/component=gateway";
    let pods = operator::api(cluster).list(&ListParams::default().labels(own)).await;
    let pods = pods.unwrap_or_else(|error| panic!("the gateway's pods cannot be listed: {error}")).items;
    pods.into_iter().filter(|pod| is_ready(pod) && pod.metadata.deletion_timestamp.is_none()).collect()
}

impl Tenant {
    /// Creates a `ServiceAccount` for a person or a program. Returns its user name and a token.
    pub async fn account(&self, name: &str) -> (String, String) {
        self.create::<ServiceAccount>(typed(json!({"metadata": {"name": name}}))).await;
        let token = request_token(&self.api(), name, json!({"expirationSeconds": 600})).await;
        (format!("system:serviceaccount:{}:{name}", self.namespace), token)
    }

    /// Returns a client of the gateway's Service.
    pub async fn gateway(&self, token: &str) -> GatewayClient {
        let services = Api::<Service>::namespaced(self.cluster.client.clone(), NAMESPACE);
        let service = services.get(&format!("{RELEASE}-gateway")).await;
        let service = service.unwrap_or_else(|error| panic!("the gateway's Service cannot be read: {error}"));
        let address = service.spec.and_then(|spec| spec.cluster_ip).expect("the gateway's Service has an address");
        self.gateway_at(&address, SERVICE_PORT, token)
    }

    /// Returns a client of one pod of the gateway.
    pub fn gateway_pod(&self, pod: &Pod, token: &str) -> GatewayClient {
        let address =
            pod.status.as_ref().and_then(|status| status.pod_ip.as_deref()).expect("a ready pod has an address");
        self.gateway_at(address, POD_PORT, token)
    }

    fn gateway_at(&self, address: &str, port: u16, token: &str) -> GatewayClient {
        let address: IpAddr = address.parse().expect("an IP address");
        let host = format!("{RELEASE}-gateway.{NAMESPACE}.svc");
        let client = reqwest::Client::builder()
            .no_proxy()
            .read_timeout(PATIENCE)
            .resolve(&host, SocketAddr::new(address, port))
            .build();
        GatewayClient {
            client: client.expect("an HTTP client"),
            base: format!("http://{host}:{port}"),
            token: token.to_owned(),
            namespace: self.namespace.clone(),
            forwarded: Vec::new(),
        }
    }
}

impl Drop for LocalGateway {
    fn drop(&mut self) {
        // The process may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl LocalGateway {
    /// Starts a gateway, and waits until it serves.
    pub async fn start(tenant: &Tenant) -> Self {
        Self::start_by(tenant, |gateway| gateway).await
    }

    /// Starts a gateway that may open this number of files. Half of them are for connections.
    pub async fn with_open_files(tenant: &Tenant, files: usize) -> Self {
        let limited = |gateway: Command| {
            let mut limited = Command::new("prlimit");
            limited.arg(format!("--nofile={files}")).arg(gateway.get_program()).args(gateway.get_args());
            limited.envs(gateway.get_envs().filter_map(|(name, value)| Some((name, value?))));
            limited
        };
        Self::start_by(tenant, limited).await
    }

    async fn start_by(tenant: &Tenant, changed: impl FnOnce(Command) -> Command) -> Self {
        let (api, health) = (free_address(), free_address());
        let arguments = [format!("--api-addr={api}"), format!("--http-addr={health}")];
        let command = command::gateway(&arguments.each_ref().map(String::as_str));
        let process = changed(command).spawn().expect("hack/images builds bloomery-gateway");
        let gateway = Self { process, url: format!("http://{api}"), namespace: tenant.namespace.clone() };
        eventually("the gateway to serve", async || {
            let response = reqwest::Client::new().get(format!("http://{health}/readyz")).send().await;
            response.and_then(reqwest::Response::error_for_status).map(drop)
        })
        .await;
        gateway
    }

    /// Returns a client, in the namespace of the story.
    pub fn client(&self, token: &str) -> GatewayClient {
        let client = reqwest::Client::builder().no_proxy().read_timeout(PATIENCE).build();
        GatewayClient {
            client: client.expect("an HTTP client"),
            base: self.url.clone(),
            token: token.to_owned(),
            namespace: self.namespace.clone(),
            forwarded: Vec::new(),
        }
    }

    /// Returns a request of a client, in the namespace of the story.
    pub fn request(&self, method: &str, path: &str, token: &str) -> RequestBuilder {
        let method = method.parse().expect("a method");
        let request = reqwest::Client::new().request(method, format!("{}{path}", self.url));
        request.bearer_auth(token).header(NAMESPACE_HEADER, &self.namespace)
    }
}

/// Returns an address of this machine that no program listens at.
fn free_address() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    listener.local_addr().expect("an address").to_string()
}

impl GatewayClient {
    /// Adds the headers of an authenticating proxy for a user in these groups, who uses the page of the gateway.
    #[must_use]
    pub fn forwarding(self, user: &str, groups: &[&str]) -> Self {
        let forwarded = vec![
            ("X-Forwarded-User", user.to_owned()),
            ("X-Forwarded-Groups", groups.join(",")),
            ("Sec-Fetch-Site", "same-origin".to_owned()),
        ];
        Self { forwarded, ..self }
    }

    /// Starts a Job. Returns the HTTP status and the body of the response, which is a problem if the gateway refuses.
    pub async fn start(&self, skill: &str, goal: &str) -> (u16, Value) {
        let body = json!({"goal": goal, "skillSlug": skill});
        let request = self.client.post(format!("{}/api/chat", self.base)).json(&body);
        let answer = self.signed(request).send().await.unwrap_or_else(|error| panic!("no answer: {error:?}"));
        (answer.status().as_u16(), answer.json().await.unwrap_or_default())
    }

    /// Starts a Job, and follows it. Returns its name too.
    pub async fn chat(&self, skill: &str, goal: &str) -> (String, EventStream) {
        let body = json!({"goal": goal, "skillSlug": skill});
        let request = self.client.post(format!("{}/api/chat", self.base)).json(&body);
        let request = self.signed(request).header("Accept", "text/event-stream");
        let response = request.send().await.unwrap_or_else(|error| panic!("no answer: {error:?}"));
        let stream = EventStream::new(response).await;
        let location = stream.response.headers().get("Location").and_then(|value| value.to_str().ok());
        let path = location.and_then(|location| location.split('?').next());
        let job = path.and_then(|path| path.rsplit('/').next()).expect("the location of the Job");
        (job.to_owned(), stream)
    }

    /// Follows a Job after an event. It repeats the request while the Service still leads to a pod that is gone.
    pub async fn follow(&self, job: &str, after: u64) -> EventStream {
        let response = eventually(&format!("the events of {job}"), async || {
            let request = self.client.get(format!("{}/api/jobs/{job}/events", self.base));
            let request = self.signed(request).header("Last-Event-ID", after.to_string());
            request.send().await.map_err(|error| format!("{error:?}"))
        })
        .await;
        EventStream::new(response).await
    }

    fn signed(&self, request: RequestBuilder) -> RequestBuilder {
        let request = request.bearer_auth(&self.token).header(NAMESPACE_HEADER, &self.namespace);
        self.forwarded.iter().fold(request, |request, (name, value)| request.header(*name, value))
    }
}

impl EventStream {
    async fn new(response: reqwest::Response) -> Self {
        let status = response.status();
        assert!(status.is_success(), "the gateway answered {status}: {}", response.text().await.unwrap_or_default());
        Self { response, received: Vec::new() }
    }

    /// Returns the next event. Returns `None` at the end of the stream, also if its connection is lost.
    pub async fn next(&mut self) -> Option<SentEvent> {
        loop {
            // A block without an event is a heartbeat.
            if let Some(event) = SentEvent::parse(&self.next_block().await?) {
                return Some(event);
            }
        }
    }

    /// Returns the next block. Returns `None` at the end of the stream, also if its connection is lost.
    async fn next_block(&mut self) -> Option<String> {
        loop {
            if let Some(end) = self.received.windows(2).position(|pair| pair == b"\n\n") {
                let block: Vec<u8> = self.received.drain(..end + 2).collect();
                return Some(String::from_utf8_lossy(&block).into_owned());
            }
            let chunk = self.response.chunk().await.ok().flatten()?;
            self.received.extend_from_slice(&chunk);
        }
    }

    /// Returns the events until the gateway reports an error, and the error, which ends the stream.
    pub async fn until_problem(mut self) -> (Vec<SentEvent>, Value) {
        let mut events = Vec::new();
        let problem = async {
            while let Some(block) = self.next_block().await {
                if field(&block, "event").as_deref() == Some("problem") {
                    return field(&block, "data").and_then(|data| serde_json::from_str(&data).ok());
                }
                events.extend(SentEvent::parse(&block));
            }
            None
        };
        let problem = tokio::time::timeout(PATIENCE, problem).await;
        let problem = problem.ok().flatten().unwrap_or_else(|| panic!("the stream should end with a problem"));
        (events, problem)
    }

    /// Returns this number of events.
    pub async fn take(&mut self, events: usize) -> Vec<SentEvent> {
        let mut taken = Vec::new();
        while taken.len() < events {
            taken.push(self.next().await.unwrap_or_else(|| panic!("the stream ended after {taken:?}")));
        }
        taken
    }

    /// Returns all further events.
    pub async fn rest(&mut self) -> Vec<SentEvent> {
        let mut rest = Vec::new();
        while let Some(event) = self.next().await {
            rest.push(event);
        }
        rest
    }
}

impl SentEvent {
    /// Parses a block of a stream. Returns `None` for a block without an event.
    ///
    /// Panics if the gateway reports an error.
    fn parse(block: &str) -> Option<Self> {
        let kind = field(block, "event")?;
        let id = field(block, "id").and_then(|id| id.parse().ok());
        Some(Self { id: id.unwrap_or_else(|| panic!("the gateway reports an error: {block}")), kind })
    }
}

/// Returns the value of a field of a block.
fn field(block: &str, name: &str) -> Option<String> {
    let mut fields = block.lines().filter_map(|line| line.split_once(':'));
    fields.find_map(|(found, value)| (found == name).then(|| value.trim_start().to_owned()))
}
