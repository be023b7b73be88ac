//! Servers that rmcp makes.

use super::*;
use axum::Router;
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
use tokio::net::TcpListener;

/// How a server speaks.
#[derive(Debug, Clone, Copy)]
pub(super) enum Era {
    Newer,
    Sessions,
    Stateless,
}

#[derive(Clone)]
pub(super) struct Shop {
    era: Era,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Shop {
    pub(super) async fn start(era: Era) -> (Self, String) {
        let shop = Self { era, seen: Arc::default() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(matches!(era, Era::Sessions))
            .with_json_response(matches!(era, Era::Stateless));
        let service = {
            let shop = shop.clone();
            StreamableHttpService::new(move || Ok(shop.clone()), Arc::new(LocalSessionManager::default()), config)
        };
        let router = Router::new().route_service("/mcp", service);
        tokio::spawn(async move { axum::serve(listener, router).await });
        (shop, url)
    }

    pub(super) fn saw(&self, what: &str) -> usize {
        self.seen.lock().unwrap().iter().filter(|seen| *seen == what).count()
    }
}

fn tool(name: &'static str) -> Tool {
    let ListedTool { description, input_schema, annotations, .. } = fixed(name);
    let tool = Tool::new(name, description, Arc::new(input_schema.as_object().unwrap().clone()));
    if annotations.is_empty() { tool } else { tool.with_annotations(ToolAnnotations::new().read_only(true)) }
}

impl ServerHandler for Shop {
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
    let (shop, url) = Shop::start(era).await;
    let client = client(&url);
    let listed = client.list(PLENTY).await.unwrap();
    assert_eq!(listed, TOOLS.map(fixed));
    assert_eq!((listed[0].read_only_hint(), listed[1].read_only_hint()), (Some(true), None));

    let arguments = r#"{"amount":9007199254740993,"order":"A-17","rate":0.1}"#;
    let key = Digest::of_bytes(b"the key");
    let echo = format!(r#"[{arguments},"{}"]"#, key.as_str());
    assert_eq!(call(&client, "echo", arguments).await, completed(&echo));
    assert_eq!(call(&client, "fail", "{}").await, failed("no such order"));
    let refused = failed("The server refused the call: no such tool (code -32602).");
    assert_eq!(call(&client, "refuse", "{}").await, refused);
    assert_eq!(shop.saw("list"), 1);
}

#[rstest]
#[tokio::test]
async fn a_call_that_hangs_is_indeterminate_and_leaves_the_others_alone(
    #[values(Era::Newer, Era::Sessions, Era::Stateless)] era: Era,
) {
    let (shop, url) = Shop::start(era).await;
    let client = client(&url);
    client.list(PLENTY).await.unwrap();
    let (hung, echoed) =
        tokio::join!(call_within(&client, "hang", "{}", Duration::from_millis(300)), call(&client, "echo", "{}"),);
    let CallOutcome::Indeterminate { text } = hung else { panic!("{hung:?}") };
    assert!(text.contains("it did not answer within"), "{text}");
    assert!(matches!(echoed, CallOutcome::Completed { .. }), "{echoed:?}");
    assert!(matches!(call(&client, "echo", "{}").await, CallOutcome::Completed { .. }));
    assert_eq!(shop.saw("hang"), 1);
}

#[rstest]
#[tokio::test]
async fn a_session_lists_once_before_its_first_call(#[values(Era::Newer, Era::Sessions, Era::Stateless)] era: Era) {
    let (shop, url) = Shop::start(era).await;
    let client = client(&url);
    let (one, other) = tokio::join!(called(&client, "echo", "{}", PLENTY), called(&client, "echo", "{}", PLENTY));
    assert_eq!((shop.saw("list"), shop.saw("echo")), (1, 2));
    assert_eq!(one.listed.iter().chain(&other.listed).collect::<Vec<_>>(), [&TOOLS.map(fixed)]);
    assert_eq!(called(&client, "echo", "{}", PLENTY).await.listed, None);
}

#[tokio::test]
async fn arguments_that_are_no_object_are_not_sent() {
    let (shop, url) = Shop::start(Era::Newer).await;
    let outcome = call(&client(&url), "echo", "[1]").await;
    let CallOutcome::Failed { text, .. } = outcome else { panic!("{outcome:?}") };
    assert!(text.starts_with("The call was not sent: its arguments are no JSON object"), "{text}");
    assert_eq!(shop.saw("echo"), 0);
}
