//! The calls with which a test makes the server hostile.
//!
//! | `order_id` | effect |
//! |---|---|
//! | `ENDLESS-1` | the result has 1 GiB |
//! | `NOISE-1` | the server writes 256 MiB to its standard output and as much to its standard error, without a pause |

use std::convert::Infallible;
use std::io::Write;
use std::iter::{once, repeat_n};

use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Request;
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

/// The size of the result of `ENDLESS-1`, in mebibytes.
const RESULT_MIB: usize = 1024;

/// The size of the output of `NOISE-1` on each stream, in mebibytes.
const NOISE_MIB: usize = 256;

const MIB: usize = 1024 * 1024;

/// The largest request.
const MAX_REQUEST_BYTES: usize = 16 * MIB;

/// Answers a request to `/mcp`: by itself if the call is `ENDLESS-1`, else by the server.
pub(super) async fn answer(request: Request, next: Next) -> Response {
    let (head, body) = request.into_parts();
    let Ok(body) = to_bytes(body, MAX_REQUEST_BYTES).await else {
        return StatusCode::PAYLOAD_TOO_LARGE.into_response();
    };
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    match message.pointer("/params/arguments/order_id").and_then(Value::as_str) {
        Some("ENDLESS-1") => return large_result(message.get("id")),
        Some("NOISE-1") => make_noise(),
        _ => {}
    }
    next.run(Request::from_parts(head, Body::from(body))).await
}

/// Returns a valid result. It is sent in chunks, so the server never has all of it in its memory.
fn large_result(id: Option<&Value>) -> Response {
    let id = id.cloned().unwrap_or_default();
    let start = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{"content":[{{"type":"text","text":""#);
    let chunks = once(Bytes::from(start))
        .chain(repeat_n(Bytes::from(vec![b'x'; MIB]), RESULT_MIB))
        .chain(once(Bytes::from_static(br#""}]}}"#)));
    let body = Body::from_stream(futures::stream::iter(chunks.map(Ok::<_, Infallible>)));
    ([(header::CONTENT_TYPE, "application/json")], body).into_response()
}

fn make_noise() {
    std::thread::spawn(|| {
        let line = format!("{}\n", "noise ".repeat(170));
        for _ in 0..NOISE_MIB * MIB / line.len() {
            let written = std::io::stdout().write_all(line.as_bytes());
            if written.and_then(|()| std::io::stderr().write_all(line.as_bytes())).is_err() {
                return;
            }
        }
    });
}
