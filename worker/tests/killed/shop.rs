//! The Skill's MCP server, with a record of its effects. It can leave a given call without an answer, which `testkit::shop` cannot.

use axum::Router;
use bloomery_testkit::twelve_steps;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use serde_json::json;
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::sync::watch;

/// The time at which the server stops to process a call that it does not answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Silence {
    BeforeEffect,
    AfterEffect,
}

/// A shop. All clones are one shop.
#[derive(Clone)]
pub(crate) struct Shop {
    pub url: String,
    /// The call that is not answered, counted from 1.
    pub silent_at: Arc<Mutex<Option<(usize, Silence)>>>,
    calls: Arc<Mutex<usize>>,
    effects: Arc<Mutex<Vec<(String, String)>>>,
    silent: watch::Sender<bool>,
}

impl Shop {
    pub(crate) async fn start() -> Self {
        let tcp = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let shop = Self {
            url: format!("http://{}/mcp", tcp.local_addr().unwrap()),
            silent_at: Arc::default(),
            calls: Arc::default(),
            effects: Arc::default(),
            silent: watch::Sender::new(false),
        };
        let config = StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
        let handler = shop.clone();
        let service =
            StreamableHttpService::new(move || Ok(handler.clone()), Arc::new(LocalSessionManager::default()), config);
        let router = Router::new().route_service("/mcp", service);
        tokio::spawn(async move { axum::serve(tcp, router).await });
        shop
    }

    /// Resets the calls and the effects.
    pub(crate) fn clear(&self) {
        *self.silent_at.lock().unwrap() = None;
        *self.calls.lock().unwrap() = 0;
        self.effects.lock().unwrap().clear();
        self.silent.send_replace(false);
    }

    /// Returns all effects so far: the tool and the key of each call.
    pub(crate) fn effects(&self) -> Vec<(String, String)> {
        self.effects.lock().unwrap().clone()
    }

    /// Returns the number of calls, including reads.
    pub(crate) fn calls(&self) -> usize {
        *self.calls.lock().unwrap()
    }

    /// Waits until the server has received the call that it does not answer, and made its effect if it has to.
    pub(crate) async fn until_silent(&self) {
        self.silent.subscribe().wait_for(|silent| *silent).await.unwrap();
    }

    async fn fall_silent(&self) -> ! {
        self.silent.send_replace(true);
        std::future::pending().await
    }
}

impl ServerHandler for Shop {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object"});
        let tool = |name| Tool::new(name, "A tool of the shop", Arc::new(schema.as_object().unwrap().clone()));
        Ok(ListToolsResult::with_all_items(["lookup", "verify", "refund", "notify"].map(tool).into()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let number = {
            let mut calls = self.calls.lock().unwrap();
            *calls += 1;
            *calls
        };
        let silent_at = *self.silent_at.lock().unwrap();
        if silent_at == Some((number, Silence::BeforeEffect)) {
            self.fall_silent().await;
        }
        let tool = request.name.to_string();
        if tool == "refund" || tool == "notify" {
            let key = context.meta.get("bloomery.dev/callKey").and_then(|key| key.as_str()).unwrap().to_owned();
            self.effects.lock().unwrap().push((tool.clone(), key));
        }
        if silent_at == Some((number, Silence::AfterEffect)) {
            self.fall_silent().await;
        }
        let arguments = serde_json::to_string(&request.arguments).unwrap();
        Ok(CallToolResult::success(vec![ContentBlock::text(twelve_steps::result(&tool, &arguments))]).into())
    }
}
