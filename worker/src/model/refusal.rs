//! Answers whose HTTP status is no success: what they mean, and whether asking again can help.

use super::trouble::{Pace, Trouble};
use super::{MAX_QUOTE, retry_after};
use crate::http;
use crate::redact::Redactor;
use jiff::Timestamp;
use reqwest::header::{LOCATION, RETRY_AFTER};
use reqwest::{Response, StatusCode};
use serde_json::Value;
use std::time::Duration;

/// How much of a refusal is read, in bytes. More says no more.
const MAX_BODY: usize = 64 * 1024;

/// Reads a refusal.
pub(super) async fn read(response: Response, redactor: &Redactor) -> Trouble {
    let status = response.status();
    let header = |name| response.headers().get(name).and_then(|value| value.to_str().ok());
    let asked = header(RETRY_AFTER).and_then(|value| retry_after::parse(value, Timestamp::now()));
    let location = header(LOCATION).map(|to| redactor.quote(to, MAX_QUOTE));
    let body = http::read_bounded(response, MAX_BODY).await.unwrap_or_default();
    let body = String::from_utf8_lossy(&body);
    let refusal = Refusal {
        status,
        asked,
        location: location.as_deref(),
        too_long: is_too_long(&body),
        says: redactor.quote(&said(&body), MAX_QUOTE).trim_end_matches('.').to_owned(),
    };
    refusal.sort()
}

/// What a refusal says, fit to be passed on.
struct Refusal<'a> {
    status: StatusCode,
    asked: Option<Duration>,
    location: Option<&'a str>,
    too_long: bool,
    says: String,
}

impl Refusal<'_> {
    /// Decides what it means.
    fn sort(self) -> Trouble {
        let status = self.status.as_u16();
        let says = if self.says.is_empty() { String::new() } else { format!(": {}", self.says) };
        let answered = format!("answered HTTP {status}{says}");
        let brisk = self.asked.map_or(Pace::Brisk, Pace::Asked);
        let slow = self.asked.map_or(Pace::Slow, Pace::Asked);
        let passing = |pace, message| Trouble::Passing { pace, message };
        match status {
            401 | 403 => passing(slow, format!("{answered}. Check the key in its Secret")),
            402 => passing(slow, format!("{answered}. Check the account that pays for it")),
            404 => passing(slow, format!("{answered}. Check the Model's baseUrl and its model's name")),
            429 => passing(brisk, format!("limits the rate of requests: it {answered}")),
            408 | 409 | 425 | 500..=599 => passing(brisk, answered),
            300..=399 => Trouble::Refused { message: redirected(status, self.location) },
            _ if self.too_long => {
                Trouble::Refused { message: format!("{answered}. The conversation is longer than the model's window") }
            }
            _ => Trouble::Refused { message: format!("refuses the request: it {answered}") },
        }
    }
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

fn is_too_long(body: &str) -> bool {
    ["context_length_exceeded", "maximum context length", "context window"].iter().any(|sign| body.contains(sign))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn of(status: u16, body: &str) -> Trouble {
        let (status, says) = (StatusCode::from_u16(status).unwrap(), said(body));
        Refusal { status, asked: None, location: None, too_long: is_too_long(body), says }.sort()
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
    #[case(400, r#"{"error":{"message":"too many tokens","code":"context_length_exceeded"}}"#, "the model's window")]
    #[case(413, "", "HTTP 413")]
    #[case(422, r#"{"detail":"tools[0] is no function"}"#, "tools[0] is no function")]
    #[case(418, "<html>I am a teapot</html>", "<html>I am a teapot</html>")]
    #[case(307, "", "baseUrl")]
    fn what_stays_is_refused_with_its_reason(#[case] status: u16, #[case] body: &str, #[case] reason: &str) {
        let Trouble::Refused { message } = of(status, body) else { panic!("not refused") };
        assert!(message.contains(reason), "{message}");
    }
}
