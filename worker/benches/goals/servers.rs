//! The model and the MCP server of a Job. They record the requests and their times. They do little work for an answer, so that their own
//! time hardly counts: the servers of the testkit take longer, because they check each request.

use crate::script::{self, FINAL, STAGES};
use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::{Router, routing::post};
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// The path of the model.
pub(crate) const MODEL: &str = "/v1/chat/completions";

/// The path of the MCP server.
pub(crate) const TOOLS: &str = "/mcp";

/// The target of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    /// The model, in the main loop.
    Plan,
    /// The model, in another stage.
    Stage,
    /// A tool.
    Tool,
}

/// A received request.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) target: Target,
    /// The time at which it was received completely.
    pub(crate) at: Instant,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// The answers of the model and of the tools.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Plan {
    /// The number of answers of the main loop.
    pub(crate) answers: usize,
    /// The length of a tool's answer, in bytes.
    pub(crate) result: usize,
    /// Whether the calls read inside of the pod, instead of calling the MCP server.
    pub(crate) in_pod: bool,
    /// The number of calls in an answer. If there are several, all of them read, so the worker makes them at the same time.
    pub(crate) at_once: usize,
}

#[derive(Debug, Default)]
struct Progress {
    answered: usize,
    stages: usize,
    seen: Vec<Seen>,
}

/// The servers of one run. All clones are the same servers.
#[derive(Debug, Clone)]
pub(crate) struct Servers {
    plan: Plan,
    result: Arc<str>,
    progress: Arc<Mutex<Progress>>,
    /// The number of requests of the main loop so far.
    main_loop_count: watch::Sender<usize>,
    /// The number of all requests so far.
    count: watch::Sender<usize>,
    /// The request of the main loop that is not answered, counted from 1.
    pub(crate) silent_at: Arc<Mutex<Option<usize>>>,
    /// The base URL, `http://127.0.0.1:<port>`.
    pub(crate) base: String,
}

impl Servers {
    pub(crate) async fn start(plan: Plan) -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let servers = Self {
            plan,
            result: script::result(plan.result).into(),
            progress: Arc::default(),
            main_loop_count: watch::Sender::new(0),
            count: watch::Sender::new(0),
            silent_at: Arc::default(),
            base: format!("http://{}", tcp.local_addr().unwrap()),
        };
        let config = StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
        let shop = servers.clone();
        let tools =
            StreamableHttpService::new(move || Ok(shop.clone()), Arc::new(LocalSessionManager::default()), config);
        let tools = Router::new().route_service(TOOLS, tools).layer(from_fn_with_state(servers.clone(), record_call));
        let model = Router::new().route(MODEL, post(complete)).with_state(servers.clone());
        tokio::spawn(async move { axum::serve(tcp, model.merge(tools)).await });
        servers
    }

    /// Returns all requests so far, in their order.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.progress.lock().unwrap().seen.clone()
    }

    /// Waits for the first request.
    pub(crate) async fn until_seen(&self) {
        self.count.subscribe().wait_for(|count| *count > 0).await.unwrap();
    }

    /// Waits until the main loop has made `n` requests to the model.
    pub(crate) async fn until_asked(&self, n: usize) {
        self.main_loop_count.subscribe().wait_for(|count| *count >= n).await.unwrap();
    }

    /// Returns the time of each step of the main loop, from one request to the model to the next.
    pub(crate) fn steps(&self) -> Vec<Duration> {
        let progress = self.progress.lock().unwrap();
        let at: Vec<Instant> =
            progress.seen.iter().filter(|seen| seen.target == Target::Plan).map(|seen| seen.at).collect();
        at.windows(2).map(|pair| pair[1] - pair[0]).collect()
    }

    fn record(&self, target: Target, headers: &HeaderMap, body: &Bytes) {
        let seen = Seen { target, at: Instant::now(), headers: headers.clone(), body: body.clone() };
        self.progress.lock().unwrap().seen.push(seen);
        self.count.send_modify(|count| *count += 1);
        if target == Target::Plan {
            self.main_loop_count.send_modify(|count| *count += 1);
        }
    }

    fn answer(&self, target: Target) -> Value {
        let mut progress = self.progress.lock().unwrap();
        if target == Target::Stage {
            progress.stages += 1;
            return script::text_message(STAGES[progress.stages - 1]);
        }
        progress.answered += 1;
        let n = progress.answered - 1;
        match n + 1 < self.plan.answers {
            true if self.plan.in_pod => script::read_message(n),
            true if self.plan.at_once > 1 => script::reads_message(n, self.plan.at_once),
            true => script::call_message(n),
            false => script::text_message(FINAL),
        }
    }
}

async fn complete(State(servers): State<Servers>, headers: HeaderMap, body: Bytes) -> Response {
    // Only requests of the main loop have tools, which come before the history.
    let head = &body[..body.len().min(256)];
    let target = if head.windows(8).any(|text| text == b"\"tools\":") { Target::Plan } else { Target::Stage };
    servers.record(target, &headers, &body);
    let silent_at = *servers.silent_at.lock().unwrap();
    if target == Target::Plan && silent_at == Some(*servers.main_loop_count.borrow()) {
        return std::future::pending().await;
    }
    let message = servers.answer(target);
    let finish = if message["tool_calls"].is_array() { "tool_calls" } else { "stop" };
    let completion = json!({
        "id": "answer", "object": "chat.completion",
        "choices": [{ "index": 0, "message": message, "finish_reason": finish }],
        "usage": { "prompt_tokens": body.len() / 4, "completion_tokens": 10 },
    });
    ([(header::CONTENT_TYPE, "application/json")], completion.to_string()).into_response()
}

/// Records tool calls. The other requests of the MCP session are not part of a step.
async fn record_call(State(servers): State<Servers>, request: Request, next: Next) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    if body.windows(12).any(|text| text == b"\"tools/call\"") {
        servers.record(Target::Tool, &parts.headers, &body);
    }
    next.run(Request::from_parts(parts, body.into())).await
}

impl ServerHandler for Servers {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = Arc::new(crate::skill::schema().as_object().unwrap().clone());
        let tool = |name| Tool::new(name, "A tool of the shop", schema.clone());
        Ok(ListToolsResult::with_all_items(crate::skill::TOOLS.map(tool).into()))
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::success(vec![ContentBlock::text(self.result.to_string())]).into())
    }
}
