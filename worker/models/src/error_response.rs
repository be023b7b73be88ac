//! Classifies error responses by whether a retry can help.

use crate::limits::MAX_QUOTE_BYTES;
use crate::request_error::{Error, RetryDelay};
use crate::{protocol, retry_after};
use bloomery_http::body;
use bloomery_redact::Redactor;
use jiff::Timestamp;
use reqwest::Response;
use reqwest::header::{LOCATION, RETRY_AFTER};
use serde_json::Value;
use std::time::Duration;

/// The largest error response that is read, in bytes. A larger one counts as empty.
const MAX_BODY_BYTES: usize = 64 * 1024;

/// An error response of a server.
#[derive(Debug)]
pub(crate) struct ErrorResponse {
    status: u16,
    /// A redacted clause such as `answered HTTP 503: down`.
    description: String,
    retry_after: Option<Duration>,
    location: Option<String>,
    body: String,
}

impl ErrorResponse {
    /// Reads a response with an error status.
    pub(crate) async fn read(response: Response, redactor: &Redactor) -> Self {
        let status = response.status().as_u16();
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let retry_after = header(RETRY_AFTER).and_then(|value| retry_after::parse(value, Timestamp::now()));
        let location = header(LOCATION).map(|to| redactor.quote(to, MAX_QUOTE_BYTES));
        let body = body::read(response, MAX_BODY_BYTES).await.unwrap_or_default();
        let body = String::from_utf8_lossy(&body).into_owned();
        let description = describe(&format!("answered HTTP {status}"), &body, redactor);
        Self { status, description, retry_after, location, body }
    }

    /// Returns the text of the response if the server objects to the request and may accept a different one.
    pub(crate) fn request_objection(&self) -> Option<&str> {
        (matches!(self.status, 400 | 422 | 501) && !is_too_long(&self.body)).then_some(&self.body)
    }

    /// Returns the error that the status and the text of the response mean.
    pub(crate) fn classify(self) -> Error {
        let Self { status, description, retry_after, location, body } = self;
        let short = retry_after.map_or(RetryDelay::Short, RetryDelay::RetryAfter);
        let long = retry_after.map_or(RetryDelay::Long, RetryDelay::RetryAfter);
        let temporary = |delay, message| Error::Temporary { delay, message };
        let refused = || Error::Refused { message: format!("refuses the request: it {description}") };
        match status {
            401 | 403 => {
                let delay = retry_after.map_or(RetryDelay::WrongKey, RetryDelay::RetryAfter);
                temporary(delay, format!("{description}. Check its key"))
            }
            402 => temporary(long, format!("{description}. Check the account that pays for it")),
            404 => temporary(long, format!("{description}. Check its address and the name of the model")),
            429 => temporary(short, format!("limits the rate of requests: it {description}")),
            413 => too_long(&description),
            _ if is_too_long(&body) => too_long(&description),
            501 => refused(),
            408 | 409 | 425 | 500..=599 => temporary(short, description),
            300..=399 => Error::Refused { message: redirect_message(status, location.as_deref()) },
            _ => refused(),
        }
    }
}

/// Converts an error in a successful response to the error of the request. Texts are redacted, because a server may quote the key, and
/// the parser quotes the server.
pub(crate) fn from_protocol_error(error: protocol::Error, redactor: &Redactor) -> Error {
    match error {
        protocol::Error::Unreadable { reason, quote } => unreadable(&reason, &quote, redactor),
        protocol::Error::Provider(error) => classify_embedded(&error, redactor)
            .unwrap_or_else(|| unreadable("it is an error", &error_message(&error.to_string()), redactor)),
        protocol::Error::Filtered { reason } => {
            let reason = redactor.quote(&reason, MAX_QUOTE_BYTES);
            Error::Refused { message: format!("gave no answer: the provider's filter stopped it ({reason})") }
        }
    }
}

fn unreadable(reason: &str, quote: &str, redactor: &Redactor) -> Error {
    let (reason, quote) = (redactor.quote(reason, MAX_QUOTE_BYTES), redactor.quote(quote, MAX_QUOTE_BYTES));
    let quote = if quote.is_empty() { "an empty body" } else { &quote };
    Error::Unreadable { message: format!("gave an answer that cannot be read: {reason}: {quote}") }
}

fn describe(event: &str, body: &str, redactor: &Redactor) -> String {
    let message = redactor.quote(&error_message(body), MAX_QUOTE_BYTES);
    let message = message.trim_end_matches('.');
    if message.is_empty() { event.to_owned() } else { format!("{event}: {message}") }
}

fn too_long(description: &str) -> Error {
    Error::TooLong { message: format!("{description}. The conversation is longer than the model's context window") }
}

/// Classifies an error object in a successful response. Returns `None` if the object has no known status or type.
fn classify_embedded(error: &Value, redactor: &Redactor) -> Option<Error> {
    let status = status_of(error)?;
    let body = error.to_string();
    let description = describe("broke off with an error", &body, redactor);
    Some(ErrorResponse { status, description, retry_after: None, location: None, body }.classify())
}

/// Returns the HTTP status that an error object corresponds to. Some providers give the number, others a name.
fn status_of(error: &Value) -> Option<u16> {
    let field = |name: &str| error.get(name);
    let number = ["code", "status"].iter().find_map(|name| field(name)?.as_u64());
    if let Some(number) = number.and_then(|number| u16::try_from(number).ok()).filter(|n| (400..600).contains(n)) {
        return Some(number);
    }
    let names = ["type", "code"].iter().filter_map(|name| field(name)?.as_str());
    names.into_iter().find_map(|name| match name {
        "invalid_request_error" | "context_length_exceeded" => Some(400),
        "authentication_error" | "invalid_api_key" => Some(401),
        "billing_error" | "insufficient_quota" => Some(402),
        "permission_error" => Some(403),
        "not_found_error" | "model_not_found" => Some(404),
        "request_too_large" => Some(413),
        "rate_limit_error" | "rate_limit_exceeded" | "requests" | "tokens" => Some(429),
        "api_error" | "server_error" | "internal_server_error" => Some(500),
        "timeout_error" => Some(504),
        "overloaded_error" => Some(529),
        _ => None,
    })
}

fn redirect_message(status: u16, location: Option<&str>) -> String {
    let to = location.unwrap_or("nowhere");
    format!(
        "answered HTTP {status}, a redirect to {to}. Redirects are not followed, because the other server would get the key: \
         set the final address"
    )
}

/// Returns the message in an error body, or the whole body if no known field holds one.
fn error_message(body: &str) -> String {
    serde_json::from_str::<Value>(body)
        .ok()
        .and_then(|json| {
            let pointers = ["/error/message", "/error", "/message", "/detail"];
            pointers.iter().find_map(|pointer| Some(json.pointer(pointer)?.as_str()?.to_owned()))
        })
        .unwrap_or_else(|| body.to_owned())
}

/// Returns whether an error body means that the conversation is too long. Recognizes the texts of OpenAI, Anthropic, vLLM, llama.cpp and
/// Gemini.
fn is_too_long(body: &str) -> bool {
    let body = body.to_lowercase();
    let phrases = [
        "context_length_exceeded",
        "maximum context length",
        "context window",
        "prompt is too long",
        "exceed context limit",
        "exceeds the available context size",
        "exceeds the maximum number of tokens",
        "request_too_large",
    ];
    phrases.iter().any(|phrase| body.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn classified(status: u16, body: &str) -> Error {
        let description = describe(&format!("answered HTTP {status}"), body, &Redactor::default());
        ErrorResponse { status, description, retry_after: None, location: None, body: body.to_owned() }.classify()
    }

    #[rstest]
    #[case(401, RetryDelay::WrongKey)]
    #[case(403, RetryDelay::WrongKey)]
    #[case(402, RetryDelay::Long)]
    #[case(404, RetryDelay::Long)]
    #[case(408, RetryDelay::Short)]
    #[case(429, RetryDelay::Short)]
    #[case(500, RetryDelay::Short)]
    #[case(503, RetryDelay::Short)]
    #[case(529, RetryDelay::Short)]
    fn a_temporary_error_is_retried_after_its_kind_of_delay(#[case] status: u16, #[case] expected: RetryDelay) {
        let Error::Temporary { delay, message } = classified(status, "") else { panic!("not temporary") };
        assert_eq!(delay, expected);
        assert!(message.contains(&format!("HTTP {status}")), "{message}");
    }

    #[rstest]
    #[case(400, r#"{"error":{"message":"bad temperature","code":"invalid_value"}}"#, "bad temperature")]
    #[case(422, r#"{"detail":"tools[0] is no function"}"#, "tools[0] is no function")]
    #[case(418, "<html>I am a teapot</html>", "<html>I am a teapot</html>")]
    #[case(501, "", "HTTP 501")]
    #[case(307, "", "set the final address")]
    fn a_permanent_error_is_refused_with_its_reason(#[case] status: u16, #[case] body: &str, #[case] reason: &str) {
        let Error::Refused { message } = classified(status, body) else { panic!("not refused") };
        assert!(message.contains(reason), "{message}");
    }

    #[rstest]
    #[case::openai(
        400,
        r#"{"error":{"message":"This model's maximum context length is 128000 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#
    )]
    #[case::anthropic(
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 215432 tokens > 200000 maximum"}}"#
    )]
    #[case::anthropic_including_the_answer(
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000"}}"#
    )]
    #[case::llama_cpp(400, r#"{"error":{"code":400,"message":"the request exceeds the available context size"}}"#)]
    #[case::a_body_that_is_too_large(413, "")]
    fn a_conversation_that_is_too_long_is_recognized(#[case] status: u16, #[case] body: &str) {
        let Error::TooLong { message } = classified(status, body) else { panic!("not too long") };
        assert!(message.contains("the model's context window"), "{message}");
    }

    #[rstest]
    #[case::by_its_number(json!({"code": 502, "message": "Upstream"}), Some("broke off with an error: Upstream"))]
    #[case::by_its_type(json!({"type": "overloaded_error", "message": "Overloaded"}), Some("error: Overloaded"))]
    #[case::by_its_code(json!({"type": "x", "code": "rate_limit_exceeded", "message": "Slow"}), Some("limits the rate"))]
    #[case::unknown(json!({"message": "quota is spent"}), None)]
    #[case::no_status(json!({"code": 17}), None)]
    #[case::no_object(json!("quota"), None)]
    fn an_error_in_a_successful_response_is_classified_by_its_code_or_type(
        #[case] error: Value,
        #[case] expected: Option<&str>,
    ) {
        let error = classify_embedded(&error, &Redactor::default());
        match (error, expected) {
            (None, None) => {}
            (Some(Error::Temporary { message, .. }), Some(expected)) => {
                assert!(message.contains(expected), "{message}");
            }
            (other, _) => panic!("{other:?}"),
        }
    }
}
