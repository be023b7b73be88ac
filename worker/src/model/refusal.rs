//! Answers whose HTTP status is no success: what they mean, and whether asking again can help.

use super::trouble::{Pace, Trouble};
use super::{MAX_QUOTE, retry_after};
use crate::http;
use bloomery_redact::Redactor;
use jiff::Timestamp;
use reqwest::Response;
use reqwest::header::{LOCATION, RETRY_AFTER};
use serde_json::Value;
use std::time::Duration;

/// How much of a refusal is read, in bytes. More says no more.
const MAX_BODY: usize = 64 * 1024;

/// What a refusal says, fit to be passed on.
#[derive(Debug)]
pub(super) struct Refusal {
    status: u16,
    /// How it was told, such as `answered HTTP 503: down`.
    told: String,
    asked: Option<Duration>,
    location: Option<String>,
    body: String,
}

impl Refusal {
    /// Reads a response whose status is no success.
    pub(super) async fn read(response: Response, redactor: &Redactor) -> Self {
        let status = response.status().as_u16();
        let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
        let asked = header(RETRY_AFTER).and_then(|value| retry_after::parse(value, Timestamp::now()));
        let location = header(LOCATION).map(|to| redactor.quote(to, MAX_QUOTE));
        let body = http::read_bounded(response, MAX_BODY).await.unwrap_or_default();
        let body = String::from_utf8_lossy(&body).into_owned();
        Self { status, told: told(&format!("answered HTTP {status}"), &body, redactor), asked, location, body }
    }

    /// What the server says of the request, where it refuses the request and might take another.
    pub(super) fn of_the_request(&self) -> Option<&str> {
        (matches!(self.status, 400 | 422 | 501) && !is_too_long(&self.body)).then_some(&self.body)
    }

    /// Decides what it means.
    pub(super) fn sort(self) -> Trouble {
        let Self { status, told, asked, location, body } = self;
        let brisk = asked.map_or(Pace::Brisk, Pace::Asked);
        let slow = asked.map_or(Pace::Slow, Pace::Asked);
        let passing = |pace, message| Trouble::Passing { pace, message };
        match status {
            401 | 403 => passing(slow, format!("{told}. Check its key")),
            402 => passing(slow, format!("{told}. Check the account that pays for it")),
            404 => passing(slow, format!("{told}. Check the Model's baseUrl and its model's name")),
            429 => passing(brisk, format!("limits the rate of requests: it {told}")),
            413 => too_long(&told),
            _ if is_too_long(&body) => too_long(&told),
            501 => Trouble::Refused { message: format!("refuses the request: it {told}") },
            408 | 409 | 425 | 500..=599 => passing(brisk, told),
            300..=399 => Trouble::Refused { message: redirected(status, location.as_deref()) },
            _ => Trouble::Refused { message: format!("refuses the request: it {told}") },
        }
    }
}

fn told(how: &str, body: &str, redactor: &Redactor) -> String {
    let says = redactor.quote(&said(body), MAX_QUOTE);
    let says = says.trim_end_matches('.');
    if says.is_empty() { how.to_owned() } else { format!("{how}: {says}") }
}

fn too_long(told: &str) -> Trouble {
    Trouble::TooLong { message: format!("{told}. The conversation is longer than the model's window") }
}

/// What an error means that came in place of an answer, behind a status of success; none where it does not say what
/// kind of error it is.
pub(super) fn inside(error: &Value, redactor: &Redactor) -> Option<Trouble> {
    let status = status_of(error)?;
    let body = error.to_string();
    let told = told("broke off with an error", &body, redactor);
    Some(Refusal { status, told, asked: None, location: None, body }.sort())
}

/// The status that an error would have had by itself: some providers give the number, and the others a name of theirs.
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

fn redirected(status: u16, location: Option<&str>) -> String {
    let to = location.unwrap_or("nowhere");
    format!(
        "answered HTTP {status} and points to {to}. Redirects are not followed, since the key would go along: \
         set the Model's baseUrl to where the API is"
    )
}

/// What a server says: the message of its error object, wherever it puts it, else the whole text.
pub(super) fn said(body: &str) -> String {
    serde_json::from_str::<Value>(body)
        .ok()
        .and_then(|json| {
            let places = ["/error/message", "/error", "/message", "/detail"];
            places.iter().find_map(|place| Some(json.pointer(place)?.as_str()?.to_owned()))
        })
        .unwrap_or_else(|| body.to_owned())
}

/// Providers say it in these words (OpenAI, Anthropic, vLLM, llama.cpp, Gemini).
fn is_too_long(body: &str) -> bool {
    let body = body.to_lowercase();
    let signs = [
        "context_length_exceeded",
        "maximum context length",
        "context window",
        "prompt is too long",
        "exceed context limit",
        "exceeds the available context size",
        "exceeds the maximum number of tokens",
        "request_too_large",
    ];
    signs.iter().any(|sign| body.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::json;

    fn of(status: u16, body: &str) -> Trouble {
        let told = told(&format!("answered HTTP {status}"), body, &Redactor::default());
        Refusal { status, told, asked: None, location: None, body: body.to_owned() }.sort()
    }

    #[rstest]
    #[case(401, Pace::Slow)]
    #[case(403, Pace::Slow)]
    #[case(402, Pace::Slow)]
    #[case(404, Pace::Slow)]
    #[case(408, Pace::Brisk)]
    #[case(429, Pace::Brisk)]
    #[case(500, Pace::Brisk)]
    #[case(503, Pace::Brisk)]
    #[case(529, Pace::Brisk)]
    fn what_may_pass_is_tried_again(#[case] status: u16, #[case] expected: Pace) {
        let Trouble::Passing { pace, message } = of(status, "") else { panic!("not passing") };
        assert_eq!(pace, expected);
        assert!(message.contains(&format!("HTTP {status}")), "{message}");
    }

    #[rstest]
    #[case(400, r#"{"error":{"message":"bad temperature","code":"invalid_value"}}"#, "bad temperature")]
    #[case(422, r#"{"detail":"tools[0] is no function"}"#, "tools[0] is no function")]
    #[case(418, "<html>I am a teapot</html>", "<html>I am a teapot</html>")]
    #[case(501, "", "HTTP 501")]
    #[case(307, "", "baseUrl")]
    fn what_stays_is_refused_with_its_reason(#[case] status: u16, #[case] body: &str, #[case] reason: &str) {
        let Trouble::Refused { message } = of(status, body) else { panic!("not refused") };
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
    #[case::anthropic_with_its_answer(
        400,
        r#"{"type":"error","error":{"type":"invalid_request_error","message":"input length and `max_tokens` exceed context limit: 199000 + 8192 > 200000"}}"#
    )]
    #[case::llama_cpp(400, r#"{"error":{"code":400,"message":"the request exceeds the available context size"}}"#)]
    #[case::a_body_that_is_too_large(413, "")]
    fn a_conversation_that_is_too_long_is_told_apart(#[case] status: u16, #[case] body: &str) {
        let Trouble::TooLong { message } = of(status, body) else { panic!("not too long") };
        assert!(message.contains("the model's window"), "{message}");
    }

    #[rstest]
    #[case::by_its_number(json!({"code": 502, "message": "Upstream"}), Some("broke off with an error: Upstream"))]
    #[case::by_its_type(json!({"type": "overloaded_error", "message": "Overloaded"}), Some("error: Overloaded"))]
    #[case::by_its_code(json!({"type": "x", "code": "rate_limit_exceeded", "message": "Slow"}), Some("limits the rate"))]
    #[case::unknown(json!({"message": "quota is spent"}), None)]
    #[case::no_status(json!({"code": 17}), None)]
    #[case::no_object(json!("quota"), None)]
    fn an_error_behind_a_success_means_what_its_status_would(#[case] error: Value, #[case] expected: Option<&str>) {
        let trouble = inside(&error, &Redactor::default());
        match (trouble, expected) {
            (None, None) => {}
            (Some(Trouble::Passing { message, .. }), Some(expected)) => {
                assert!(message.contains(expected), "{message}");
            }
            (other, _) => panic!("{other:?}"),
        }
    }
}
