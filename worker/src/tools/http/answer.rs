//! What the model reads of an answer: the status, a few headers, and the body, where it is text.

use super::super::Fault;
use super::lost;
use crate::http::{BodyError, read_bounded};
use bloomery_crds::v1alpha1::Method;
use bloomery_redact::Redactor;
use reqwest::header::HeaderMap;
use reqwest::{Response, StatusCode};
use std::fmt::Write;

/// The largest body that is read, in bytes.
pub(super) const MAX_BODY: usize = crate::mcp::MAX_BODY;

/// The headers that are told.
const TOLD: [&str; 8] =
    ["content-type", "content-length", "location", "etag", "last-modified", "retry-after", "link", "allow"];

/// How much of a header is told, in bytes, of a type, and of an answer that proves nothing.
const MAX_HEADER: usize = 1024;
const MAX_KIND: usize = 128;
const MAX_QUOTE: usize = 1024;

/// What an answer means. The endpoint answers for itself, so a status of 4xx is its answer that the call failed, 404 too. One
/// of 5xx may be anybody's on the way, and proves nothing of a call that may change something.
pub(super) async fn of(response: Response, method: Method, redactor: &Redactor) -> Result<String, Fault> {
    let status = response.status();
    let (head, kind) = (head(status, response.headers(), redactor), kind(response.headers(), redactor));
    let text = match read_bounded(response, MAX_BODY).await {
        Ok(body) => with_body(head, body, &kind),
        Err(error) => {
            let why = match error {
                BodyError::TooLarge { .. } => format!("{error}: it was not read. Ask for less, where that is possible"),
                BodyError::Cut { .. } | BodyError::Silent { .. } => error.to_string(),
            };
            if method.is_read() && status.is_success() {
                return Err(Fault::Failed(format!("{head}\n[{why}]")));
            }
            format!("{head}\n[{why}]")
        }
    };
    if status.is_success() || status.is_redirection() {
        Ok(text)
    } else if status.is_client_error() || method.is_read() {
        Err(Fault::Failed(text))
    } else {
        Err(lost(method, &format!("it answered {}", redactor.quote(&text, MAX_QUOTE))))
    }
}

fn head(status: StatusCode, headers: &HeaderMap, redactor: &Redactor) -> String {
    let mut head = format!("HTTP {} {}\n", status.as_u16(), status.canonical_reason().unwrap_or_default());
    for name in TOLD {
        for value in headers.get_all(name) {
            // Writing to a text cannot fail.
            let value = redactor.quote(&String::from_utf8_lossy(value.as_bytes()), MAX_HEADER);
            let _ = writeln!(head, "{name}: {value}");
        }
    }
    if status.is_redirection() && headers.contains_key("location") {
        head.push_str("[Redirects are not followed.]\n");
    }
    head
}

fn kind(headers: &HeaderMap, redactor: &Redactor) -> String {
    let kind = headers.get("content-type").and_then(|kind| kind.to_str().ok()).unwrap_or("no type");
    let encoding = headers.get("content-encoding").and_then(|encoding| encoding.to_str().ok());
    match encoding.filter(|encoding| !encoding.eq_ignore_ascii_case("identity")) {
        Some(encoding) => redactor.quote(&format!("{kind}, {encoding}"), MAX_KIND),
        None => redactor.quote(kind, MAX_KIND),
    }
}

/// The head with the body below it, which is not copied.
fn with_body(head: String, body: Vec<u8>, kind: &str) -> String {
    let bytes = body.len();
    match String::from_utf8(body) {
        Ok(text) if text.is_empty() => head,
        Ok(mut text) if !text.contains('\0') => {
            text.insert_str(0, &(head + "\n"));
            text
        }
        Ok(_) | Err(_) => format!("{head}\n[A body of {bytes} bytes ({kind}) that is no text: it is not shown.]"),
    }
}
