//! The MCP server of a task. It records the calls that it receives, and answers each with a prepared result.

use super::agent::{Agent, Call, Task, Tool};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use bloomery_testkit::local_server;
use serde_json::{Map, Value, json};
use std::sync::{Arc, Mutex};

/// A call that the server received: its tool and its arguments.
pub type Received = (String, Map<String, Value>);

/// The server. It runs until the bench ends.
pub struct ToolServer {
    url: String,
    received: Arc<Mutex<Vec<Received>>>,
}

#[derive(Clone)]
struct Tools {
    list: Value,
    /// The result of each call of the task, and then of each tool.
    results: Arc<Vec<Prepared>>,
    received: Arc<Mutex<Vec<Received>>>,
}

/// A prepared result.
struct Prepared {
    tool: String,
    /// The arguments of the calls that get the result. Without them, all calls of the tool do.
    arguments: Option<Map<String, Value>>,
    result: Value,
}

impl ToolServer {
    /// Starts the server of a task.
    pub async fn start(agent: &Agent, task: &Task) -> Self {
        let received = Arc::default();
        let of_call = |call: &Call| {
            let (tool, arguments) = (call.tool.clone(), Some(call.arguments.clone()));
            Some(Prepared { tool, arguments, result: call.result.clone()? })
        };
        let of_tool = |tool: &Tool| Prepared { tool: tool.name.clone(), arguments: None, result: tool.result.clone() };
        let results = task.calls.iter().filter_map(of_call).chain(agent.tools.iter().map(of_tool)).collect();
        let list = agent.tools.iter().map(listed).collect();
        let tools = Tools { list, results: Arc::new(results), received: Arc::clone(&received) };
        let url = local_server::serve(Router::new().route("/mcp", post(answer)).with_state(tools)).await;
        Self { url: format!("{url}/mcp"), received }
    }

    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns whether the server received a call of the task. Equal calls of the task are counted.
    pub fn has_received(&self, task: &Task, at: usize) -> bool {
        let wanted = &task.calls[at];
        let before =
            task.calls[..=at].iter().filter(|call| call.tool == wanted.tool && call.arguments == wanted.arguments);
        let received = self.received.lock().unwrap();
        let is_equal = |(tool, arguments): &&Received| *tool == wanted.tool && *arguments == wanted.arguments;
        received.iter().filter(is_equal).count() >= before.count()
    }
}

/// Returns a tool as `tools/list` lists it.
fn listed(tool: &Tool) -> Value {
    let names = tool.arguments.keys().filter(|name| !name.ends_with('?'));
    let schemas = tool.arguments.iter().map(|(name, schema)| (name.trim_end_matches('?').to_owned(), schema.clone()));
    json!({
        "name": tool.name,
        "description": tool.description,
        "inputSchema": {
            "type": "object",
            "properties": schemas.collect::<Map<String, Value>>(),
            "required": names.collect::<Vec<_>>(),
        },
    })
}

async fn answer(State(tools): State<Tools>, Json(request): Json<Value>) -> Response {
    let result = match request["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "bench", "version": "1"},
        }),
        "tools/list" => json!({ "tools": tools.list }),
        "tools/call" => tools.call(&request["params"]),
        method if method.starts_with("notifications/") => return StatusCode::ACCEPTED.into_response(),
        _ => {
            let error = json!({"code": -32601, "message": "unknown method"});
            return Json(json!({"jsonrpc": "2.0", "id": request["id"], "error": error})).into_response();
        }
    };
    Json(json!({"jsonrpc": "2.0", "id": request["id"], "result": result})).into_response()
}

impl Tools {
    fn call(&self, params: &Value) -> Value {
        let name = params["name"].as_str().unwrap_or_default();
        let arguments = params["arguments"].as_object().cloned().unwrap_or_default();
        let is_of_call = |prepared: &&Prepared| {
            prepared.tool == name && prepared.arguments.as_ref().is_none_or(|wanted| *wanted == arguments)
        };
        let result = self.results.iter().find(is_of_call).map(|prepared| prepared.result.clone()).unwrap_or_default();
        self.received.lock().unwrap().push((name.to_owned(), arguments));
        match result {
            Value::Object(_) => {
                json!({"content": [{"type": "text", "text": result.to_string()}], "structuredContent": result})
            }
            Value::String(text) => json!({"content": [{"type": "text", "text": text}]}),
            other => panic!("the result of {name} is neither an object nor a text: {other}"),
        }
    }
}
