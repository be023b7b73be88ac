//! Attempts whose tools are those of a real MCP server, with the clients that the run document leads to.

use super::*;
use crate::fixture::shop::Refund;
use crate::fixture::stand::Stand;
use axum::Router;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::run::McpEndpoint;
use bloomery_engine::Event;
use bloomery_testkit::local_server;
use bloomery_testkit::recording_model::Answer;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rstest::rstest;
use serde_json::json;
use std::sync::atomic::{AtomicU32, Ordering};

mod external;

/// The smallest limit that a Skill can set.
const SMALLEST_LIMIT: u32 = 65_536;

/// The text that each tool returns. It is larger than the smallest limit.
fn text() -> String {
    "one row\n".repeat(10_000)
}

/// A server with a tool, and with one that has the name of a script. Clones count their calls together.
#[derive(Clone, Default)]
struct Exports {
    calls: Arc<AtomicU32>,
}

impl Exports {
    fn router(&self) -> Router {
        let config = StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
        let exports = self.clone();
        let service =
            StreamableHttpService::new(move || Ok(exports.clone()), Arc::new(LocalSessionManager::default()), config);
        Router::new().route_service("/mcp", service)
    }

    async fn start(&self) -> McpEndpoint {
        McpEndpoint { url: format!("{}/mcp", local_server::serve(self.router()).await) }
    }
}

impl ServerHandler for Exports {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object"});
        let tool = |name| Tool::new(name, "Exports all rows", Arc::new(schema.as_object().unwrap().clone()));
        Ok(ListToolsResult::with_all_items(["export", "script_export"].map(tool).into()))
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Ok(CallToolResult::success(vec![ContentBlock::text(text())]).into())
    }
}

/// Returns the script of a Job that calls `tool` once.
fn script(tool: &'static str) -> Vec<Answer> {
    let done = Answer::Says("Done.\n```json\n{\"status\": \"done\"}\n```\n");
    vec![Answer::Calls(vec![(tool, json!({}))]), done]
}

/// Returns the tools of an attempt, with the clients that its run document leads to. They reach servers of this machine.
fn tools_of(args: &RunArgs, inputs: &Inputs) -> SkillTools {
    let cache = SharedCache::new(&args.memory, &args.pod_uid);
    let addresses = AddressPolicy::for_pod("acme", vec!["127.0.0.0/8".parse().unwrap()]);
    let client = mcp_client(inputs, cache, addresses, &ServerTokens::new(Redactor::default())).unwrap();
    with_scripts(SkillTools::new(client), inputs).unwrap()
}

/// Runs a Job that calls `tool` once. Its Skill has a script beside a server, and this limit. Returns the event with the result, and the
/// result that the model receives.
async fn exported(tool: &'static str, max_result_bytes: Option<u32>) -> (Event, String) {
    let mut stand = Stand::new(script(tool), Refund::Answers).await;
    stand.skill.engine.get_or_insert_default().max_result_bytes = max_result_bytes;
    let scripts = json!({"image": "localhost/sh:1", "files": {"export.sh": "exit 0"}});
    stand.skill.scripts = Some(serde_json::from_value(scripts).unwrap());
    let args = stand.args(1);
    let mut inputs = Inputs::read(&args, Redactor::default()).unwrap();
    let exports = Exports::default();
    inputs.revision.mcp = Some(exports.start().await);
    inputs.revision.scripts = inputs.revision.mcp.clone();

    let tools = tools_of(&args, &inputs);
    assert_eq!(stand.run_on(1, Disk, Stop::default(), &tools).await.unwrap(), Exit::Finished);
    tools.close().await;
    assert_eq!(stand.termination(1).outcome.unwrap().code, OutcomeCode::Succeeded);
    assert_eq!(exports.calls.load(Ordering::Relaxed), 1);

    let is_result = |event: &Event| matches!(event, Event::ToolCompleted { .. } | Event::ResultOffloaded { .. });
    let results: Vec<Event> = stand.log().into_iter().map(|entry| entry.event).filter(is_result).collect();
    assert_eq!(results.len(), 1, "{results:?}");
    let request = stand.model.requests().swap_remove(1);
    let messages = request["messages"].as_array().unwrap();
    let received = messages.iter().find(|message| message["role"] == "tool").unwrap();
    (results[0].clone(), received["content"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn a_result_beyond_the_limit_of_the_skill_is_not_read_and_the_model_learns_that_the_call_has_happened() {
    let (recorded, received) = Box::pin(exported("export", Some(SMALLEST_LIMIT))).await;
    let note =
        "[The call has happened: the server answered it. But the answer has more than 65536 bytes, so it was not read";
    let Event::ToolCompleted { text, .. } = &recorded else { panic!("{recorded:?}") };
    assert!(text.starts_with(note), "{text}");
    assert!(received.contains(note) && !received.contains("one row"), "{received}");
}

#[rstest]
#[case::by_default("export", None)]
#[case::of_a_script_by_default("script_export", None)]
#[case::of_a_script("script_export", Some(SMALLEST_LIMIT))]
#[tokio::test]
async fn the_same_result_is_read(#[case] tool: &'static str, #[case] max_result_bytes: Option<u32>) {
    let (recorded, received) = Box::pin(exported(tool, max_result_bytes)).await;
    let Event::ResultOffloaded { bytes, .. } = &recorded else { panic!("{recorded:?}") };
    assert_eq!(*bytes, text().len() as u64);
    assert!(received.contains("one row\none row") && !received.contains("was not read"), "{received}");
}
