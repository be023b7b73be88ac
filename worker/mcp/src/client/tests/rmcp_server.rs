//! Tests against servers of rmcp. Unlike the server of `testkit`, each of them supports only one era of the protocol.

use super::*;
use axum::Router;
use bloomery_testkit::local_server;
use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorCode, ErrorData, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{RequestContext, RoleServer};
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rstest::rstest;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::sync::Mutex;

/// The form of the protocol that a server supports.
#[derive(Debug, Clone, Copy)]
pub(super) enum Era {
    Newer,
    /// The older era, with sessions and event streams.
    Sessions,
    /// The older era, without sessions and with JSON answers.
    Stateless,
}

/// A server with the tools [`TOOLS`]. Clones share their record.
#[derive(Clone)]
pub(super) struct RmcpServer {
    era: Era,
    /// The name of each called tool, and `list` for each list.
    seen: Arc<Mutex<Vec<String>>>,
}

impl RmcpServer {
    pub(super) async fn start(era: Era) -> (Self, String) {
        let server = Self { era, seen: Arc::default() };
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(matches!(era, Era::Sessions))
            .with_json_response(matches!(era, Era::Stateless));
        let service = {
            let server = server.clone();
            StreamableHttpService::new(move || Ok(server.clone()), Arc::new(LocalSessionManager::default()), config)
        };
        let router = Router::new().route_service("/mcp", service);
        (server, format!("{}/mcp", local_server::serve(router).await))
    }

    /// Returns the number of calls of a tool, or of lists if `name` is `list`.
    pub(super) fn count(&self, name: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|seen| *seen == name).count()
    }
}

fn tool(name: &'static str) -> Tool {
    let ListedTool { description, input_schema, annotations, .. } = tool_at_start(name);
    let tool = Tool::new(name, description, Arc::new(input_schema.as_object().unwrap().clone()));
    if annotations.is_empty() { tool } else { tool.with_annotations(ToolAnnotations::new().read_only(true)) }
}

impl ServerHandler for RmcpServer {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        match self.era {
            Era::Newer => Cow::Borrowed(&[ProtocolVersion::V_2026_07_28]),
            Era::Sessions | Era::Stateless => Cow::Borrowed(&[ProtocolVersion::V_2025_06_18]),
        }
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        self.seen.lock().unwrap().push("list".to_owned());
        Ok(ListToolsResult::with_all_items(TOOLS.map(tool).into()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        self.seen.lock().unwrap().push(request.name.to_string());
        let result = match &*request.name {
            "echo" => {
                let key = context.meta.get("bloomery.dev/callKey").cloned().unwrap_or_default();
                let arguments = Value::from(request.arguments.unwrap_or_default());
                CallToolResult::success(vec![ContentBlock::text(json!([arguments, key]).to_string())])
            }
            "fail" => CallToolResult::error(vec![ContentBlock::text("no such order")]),
            "hang" => std::future::pending().await,
            _ => return Err(ErrorData::new(ErrorCode::INVALID_PARAMS, "no such tool", None)),
        };
        Ok(result.into())
    }
}

#[rstest]
#[tokio::test]
async fn tools_are_listed_and_called(#[values(Era::Newer, Era::Sessions, Era::Stateless)] era: Era) {
    let (server, url) = RmcpServer::start(era).await;
    let client = client(&url);
    let listed = client.list(LONG_TIMEOUT).await.unwrap();
    assert_eq!(listed, TOOLS.map(tool_at_start));
    assert_eq!((listed[0].read_only_hint(), listed[1].read_only_hint()), (Some(true), None));

    let arguments = r#"{"amount":9007199254740993,"order":"A-17","rate":0.1}"#;
    let key = Digest::of_bytes(b"the key");
    let echo = format!(r#"[{arguments},"{}"]"#, key.as_str());
    assert_eq!(call(&client, "echo", arguments).await, completed(&echo));
    assert_eq!(call(&client, "fail", "{}").await, failed("no such order"));
    let refused = failed("The server refused the call: no such tool (code -32602).");
    assert_eq!(call(&client, "refuse", "{}").await, refused);
    assert_eq!(server.count("list"), 1);
}

#[rstest]
#[tokio::test]
async fn a_call_that_hangs_is_indeterminate_and_does_not_affect_others(
    #[values(Era::Newer, Era::Sessions, Era::Stateless)] era: Era,
) {
    let (server, url) = RmcpServer::start(era).await;
    let client = client(&url);
    client.list(LONG_TIMEOUT).await.unwrap();
    let (hung, echoed) =
        tokio::join!(call_within(&client, "hang", "{}", Duration::from_millis(300)), call(&client, "echo", "{}"),);
    let CallOutcome::Indeterminate { text } = hung else { panic!("{hung:?}") };
    assert!(text.contains("it did not answer within"), "{text}");
    assert!(matches!(echoed, CallOutcome::Completed { .. }), "{echoed:?}");
    assert!(matches!(call(&client, "echo", "{}").await, CallOutcome::Completed { .. }));
    assert_eq!(server.count("hang"), 1);
}

#[rstest]
#[tokio::test]
async fn a_session_lists_once_before_its_first_call(#[values(Era::Newer, Era::Sessions, Era::Stateless)] era: Era) {
    let (server, url) = RmcpServer::start(era).await;
    let client = client(&url);
    let (one, other) = tokio::join!(
        call_result(&client, "echo", "{}", LONG_TIMEOUT),
        call_result(&client, "echo", "{}", LONG_TIMEOUT)
    );
    assert_eq!((server.count("list"), server.count("echo")), (1, 2));
    assert_eq!(one.listed.iter().chain(&other.listed).collect::<Vec<_>>(), [&TOOLS.map(tool_at_start)]);
    assert_eq!(call_result(&client, "echo", "{}", LONG_TIMEOUT).await.listed, None);
}

#[tokio::test]
async fn arguments_that_are_not_an_object_are_not_sent() {
    let (server, url) = RmcpServer::start(Era::Newer).await;
    let outcome = call(&client(&url), "echo", "[1]").await;
    let CallOutcome::Failed { text, .. } = outcome else { panic!("{outcome:?}") };
    assert!(text.starts_with("The call was not sent: its arguments are not a JSON object"), "{text}");
    assert_eq!(server.count("echo"), 0);
}
