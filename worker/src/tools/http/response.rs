//! Converts an HTTP response to text for the model: the status, a few headers, and the body if it is text.

use super::super::error::{Error, unanswered};
use bloomery_crds::v1alpha1::Method;
use bloomery_http::body;
use bloomery_redact::Redactor;
use reqwest::header::HeaderMap;
use reqwest::{Response, StatusCode};
use std::fmt::Write;

/// The largest body that is read, in bytes.
pub(super) const MAX_BODY_BYTES: usize = bloomery_mcp::MAX_BODY_BYTES;

/// The headers that the model sees.
const SHOWN_HEADERS: [&str; 8] =
    ["content-type", "content-length", "location", "etag", "last-modified", "retry-after", "link", "allow"];

/// The longest value of a header, in bytes.
const MAX_HEADER_BYTES: usize = 1024;

/// The longest content type in a note, in bytes.
const MAX_TYPE_BYTES: usize = 128;

/// The longest quote of a response with a server error, in bytes.
const MAX_QUOTE_BYTES: usize = 1024;

/// Reads a response. A status of 4xx, including 404, means that the call failed. A status of 5xx may come from a proxy, so a call that may
/// have an effect is indeterminate.
pub(super) async fn read(response: Response, method: Method, redactor: &Redactor) -> Result<String, Error> {
    let status = response.status();
    let head = head(status, response.headers(), redactor);
    let content_type = content_type(response.headers(), redactor);
    let text = match body::read(response, MAX_BODY_BYTES).await {
        Ok(body) => with_body(head, body, &content_type),
        Err(error) => {
            let reason = match error {
                body::Error::TooLarge { .. } => {
                    format!("{error}, so it was not read. Request less if the API permits it")
                }
                body::Error::Interrupted { .. } | body::Error::Stalled { .. } => error.to_string(),
            };
            if method.is_read() && status.is_success() {
                return Err(Error::Failed(format!("{head}\n[{reason}]")));
            }
            format!("{head}\n[{reason}]")
        }
    };
    if status.is_success() || status.is_redirection() {
        Ok(text)
    } else if status.is_client_error() || method.is_read() {
        Err(Error::Failed(text))
    } else {
        Err(unanswered(method, &format!("it answered {}", redactor.quote(&text, MAX_QUOTE_BYTES))))
    }
}

fn head(status: StatusCode, headers: &HeaderMap, redactor: &Redactor) -> String {
    let mut head = format!("HTTP {} {}\n", status.as_u16(), status.canonical_reason().unwrap_or_default());
    for name in SHOWN_HEADERS {
        for value in headers.get_all(name) {
            let value = redactor.quote(&String::from_utf8_lossy(value.as_bytes()), MAX_HEADER_BYTES);
            // Writing to a `String` cannot fail.
            let _ = writeln!(head, "{name}: {value}");
        }
    }
    if status.is_redirection() && headers.contains_key("location") {
        head.push_str("[Redirects are not followed.]\n");
    }
    head
}

fn content_type(headers: &HeaderMap, redactor: &Redactor) -> String {
    let kind = headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or("unknown type");
    let encoding = headers.get("content-encoding").and_then(|encoding| encoding.to_str().ok());
    match encoding.filter(|encoding| !encoding.eq_ignore_ascii_case("identity")) {
        Some(encoding) => redactor.quote(&format!("{kind}, {encoding}"), MAX_TYPE_BYTES),
        None => redactor.quote(kind, MAX_TYPE_BYTES),
    }
}

/// Returns the head and the body below it. The body is not copied.
fn with_body(head: String, body: Vec<u8>, content_type: &str) -> String {
    let bytes = body.len();
    match String::from_utf8(body) {
        Ok(text) if text.is_empty() => head,
        Ok(mut text) if !text.contains('\0') => {
            text.insert_str(0, &(head + "\n"));
            text
        }
        Ok(_) | Err(_) => {
            format!("{head}\n[The body of {bytes} bytes ({content_type}) is not text and is not shown.]")
        }
    }
}
