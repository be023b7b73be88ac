//! An MCP server over standard input and output, for tests and the demo. It uses only the standard library and JSON, so as a static
//! program it runs in an empty image.
//!
//! Its tool `track_order` answers where an order is. Tracking `EXIT` ends the process before the answer. Its tool `look` answers what a
//! file contains, and what the server knows of its secrets: the host of `DATABASE_URL`, and the size of the file that `KEY_FILE` names. If
//! `NEEDS_DATABASE` is set, the server ends at once without a `DATABASE_URL`. Its tool `connect` answers whether the address `<ip>:<port>` can
//! be connected to. The command `connect ADDRESS` does this once, and exits with 0 if it is connected.

use serde_json::{Value, json};
use std::io::{BufRead, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

/// The time limit for a connection. Network plugins drop the packets of a connection that a policy does not allow.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

fn main() -> ExitCode {
    let mut output = std::io::stdout();
    let mut arguments = std::env::args().skip(1);
    if let (Some("connect"), Some(address)) = (arguments.next().as_deref(), arguments.next()) {
        let connected = connect(&address);
        let _ = writeln!(output, "{address}: {connected:?}");
        return if connected.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE };
    }
    if std::env::var_os("NEEDS_DATABASE").is_some() && std::env::var_os("DATABASE_URL").is_none() {
        let _ = writeln!(std::io::stderr(), "e2e-stdio: DATABASE_URL is not set");
        return ExitCode::FAILURE;
    }
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
        "tools/list" => json!({"tools": [
            tool("track_order", "Tells where an order is", "order_id"),
            tool("connect", "Tells whether an address can be connected to", "address"),
            tool("look", "Tells what a file contains, and which secrets the server has", "path"),
        ]}),
        "tools/call" if text("/params/name") == "connect" => {
            let address = text("/params/arguments/address");
            let text = match connect(address) {
                Ok(()) => format!("{address}: connected"),
                Err(error) => format!("{address}: not connected: {error}"),
            };
            json!({"content": [{"type": "text", "text": text}]})
        }
        "tools/call" if text("/params/name") == "look" => {
            json!({"content": [{"type": "text", "text": look(text("/params/arguments/path"))}]})
        }
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

/// Returns the definition of a tool with one argument.
fn tool(name: &str, description: &str, argument: &str) -> Value {
    json!({
        "name": name, "description": description, "annotations": {"readOnlyHint": true},
        "inputSchema": {
            "type": "object", "properties": {argument: {"type": "string"}}, "required": [argument],
            "additionalProperties": false,
        },
    })
}

/// Connects to an address, and closes the connection.
fn connect(address: &str) -> std::io::Result<()> {
    let address: SocketAddr = address.parse().map_err(std::io::Error::other)?;
    TcpStream::connect_timeout(&address, CONNECT_TIMEOUT).map(drop)
}

/// Describes a file and the secrets, without their values.
fn look(path: &str) -> String {
    let content = std::fs::read_to_string(path).unwrap_or_else(|error| error.to_string());
    let database = std::env::var("DATABASE_URL").unwrap_or_default();
    let host = database.rsplit('@').next().unwrap_or_default();
    let key = std::env::var("KEY_FILE").ok().and_then(|file| std::fs::read(file).ok());
    let token = std::path::Path::new("/var/run/bloomery").exists() || std::path::Path::new("/memory").exists();
    format!(
        "{path}: {}; database: {host}; key: {} bytes; files of the worker: {token}",
        content.trim(),
        key.map_or(0, |key| key.len())
    )
}
