//! Recognises servers that only have the transport HTTP+SSE of MCP 2024-11-05, which the client does not support.

use futures::StreamExt;
use reqwest::Url;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use sse_stream::SseStream;
use std::time::Duration;

/// The path of the stream in the SDKs that had this transport.
const USUAL_PATH: &str = "/sse";

/// The timeout of each request.
const TIMEOUT: Duration = Duration::from_secs(3);

/// The largest number of chunks that are read for the first event.
const MAX_CHUNKS: usize = 16;

/// Returns whether a server opens a stream of the older transport at `url`, or at the usual path of that transport. The request only
/// reads, and carries `headers`.
pub(crate) async fn is_at(http: &reqwest::Client, headers: &HeaderMap, url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return false };
    let mut usual = url.clone();
    usual.set_path(USUAL_PATH);
    for url in [url, usual] {
        if tokio::time::timeout(TIMEOUT, begins_with_endpoint(http, headers, url)).await == Ok(Some(true)) {
            return true;
        }
    }
    false
}

/// Returns whether the stream at `url` begins with the event `endpoint`, which names the URL for requests.
async fn begins_with_endpoint(http: &reqwest::Client, headers: &HeaderMap, url: Url) -> Option<bool> {
    let request = http.get(url).headers(headers.clone()).header(ACCEPT, "text/event-stream");
    let response = request.send().await.ok()?.error_for_status().ok()?;
    let kind = response.headers().get(CONTENT_TYPE)?.to_str().ok()?;
    if !kind.starts_with("text/event-stream") {
        return None;
    }
    let first = SseStream::from_bytes_stream(response.bytes_stream().take(MAX_CHUNKS)).next().await?.ok()?;
    Some(first.event.as_deref() == Some("endpoint"))
}
