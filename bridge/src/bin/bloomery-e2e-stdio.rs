//! An MCP server over standard input and output, for tests and the demo. It uses only the standard library and JSON, so as a static
//! program it runs in an empty image.
//!
//! Its tool `track_order` answers where an order is. Tracking `EXIT` ends the process before the answer.

use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut output = std::io::stdout();
    let _ = writeln!(std::io::stderr(), "e2e-stdio: reading messages");
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let Ok(message) = serde_json::from_str::<Value>(&line) else { return ExitCode::FAILURE };
        let Some(id) = message.get("id").filter(|_| message.get("method").is_some()) else { continue };
        let Some((member, value)) = answer(&message) else { return ExitCode::FAILURE };
        let answer = json!({"jsonrpc": "2.0", "id": id, member: value});
        if writeln!(output, "{answer}").and_then(|()| output.flush()).is_err() {
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

/// Returns the answer to a request, as the name and the value of its member; `None` if the process has to end.
fn answer(request: &Value) -> Option<(&'static str, Value)> {
    let text = |pointer| request.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
    let result = match text("/method") {
        "initialize" => json!({
            "protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "e2e-stdio", "version": env!("CARGO_PKG_VERSION")},
        }),
        "ping" => json!({}),
        "tools/list" => json!({"tools": [{
            "name": "track_order", "description": "Tells where an order is", "annotations": {"readOnlyHint": true},
            "inputSchema": {
                "type": "object", "properties": {"order_id": {"type": "string"}}, "required": ["order_id"],
                "additionalProperties": false,
            },
        }]}),
        "tools/call" => match text("/params/arguments/order_id") {
            "EXIT" => return None,
            order => {
                let text = format!("Order {order} is with the carrier; process {}.", std::process::id());
                json!({"content": [{"type": "text", "text": text}]})
            }
        },
        _ => return Some(("error", json!({"code": -32601, "message": "unknown method"}))),
    };
    Some(("result", result))
}
