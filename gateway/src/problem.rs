//! Errors of requests, as problem details (RFC 9457).

use axum::Json;
use axum::http::header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{Method, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use bloomery_embed::ErrorKind;
use bloomery_embed::text::with_option_names;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use std::time::Duration;

/// The time after which a client may try again if all connections are in use, in seconds.
const BUSY_SECONDS: u64 = 10;

/// The error of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Problem {
    /// The status of the response.
    #[serde(serialize_with = "number")]
    #[schemars(with = "u16")]
    status: StatusCode,
    /// The name of the status.
    #[schemars(with = "String")]
    title: &'static str,
    /// The description for people.
    detail: String,
    /// The time in seconds after which the same request may succeed.
    #[serde(skip)]
    retry_after: Option<u64>,
}

// serde passes the value by reference.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn number<S: Serializer>(status: &StatusCode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u16(status.as_u16())
}

impl Problem {
    /// Creates a problem. The detail says what failed, why, and what to do next.
    pub fn new(status: StatusCode, detail: impl Into<String>) -> Self {
        let title = status.canonical_reason().unwrap_or("Error");
        Self { status, title, detail: detail.into(), retry_after: None }
    }

    /// Creates the problem of a user who has sent too many requests.
    pub(crate) fn too_many_requests(wait: Duration) -> Self {
        // Rounded up.
        let seconds = wait.as_secs().saturating_add(1);
        let detail = format!("You have sent too many requests. Try again in {seconds} s.");
        Self { retry_after: Some(seconds), ..Self::new(StatusCode::TOO_MANY_REQUESTS, detail) }
    }

    /// Creates the problem of a client that gets no connection of its own.
    pub(crate) fn too_many_connections() -> Self {
        let detail =
            format!("The server refuses the request: all its connections are in use. Try again in {BUSY_SECONDS} s.");
        Self { retry_after: Some(BUSY_SECONDS), ..Self::new(StatusCode::SERVICE_UNAVAILABLE, detail) }
    }

    /// Returns the status of the response.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the description for people.
    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }
}

impl From<bloomery_embed::Error> for Problem {
    fn from(error: bloomery_embed::Error) -> Self {
        let bloomery_embed::Error { kind, message, findings } = error;
        let status = match kind {
            ErrorKind::Invalid => StatusCode::BAD_REQUEST,
            ErrorKind::NotFound => StatusCode::NOT_FOUND,
            ErrorKind::Conflict | ErrorKind::TooLate => StatusCode::CONFLICT,
            ErrorKind::Unauthenticated => StatusCode::UNAUTHORIZED,
            ErrorKind::Forbidden => StatusCode::FORBIDDEN,
            ErrorKind::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
            ErrorKind::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let findings = findings.iter().map(|found| {
            let (file, finding) = (&found.file, &found.finding);
            format!("{file}:{}:{}: {}", finding.line, finding.column, finding.message)
        });
        let detail = std::iter::once(message).chain(findings).collect::<Vec<_>>().join("\n");
        Self::new(status, with_option_names(&detail, |field| Some(name_of_option(field))))
    }
}

/// Returns the name that a client knows for an option in a message: that of a field or a header of a request, or of an option of the server.
fn name_of_option(field: &str) -> String {
    let name = match field {
        "run_key" => "`Idempotency-Key`",
        "skill" => "`skillSlug`",
        // Messages say what to add to this option. The chat API of OpenAI has no such field.
        "resources" => "to `resources` of `POST /api/chat`:",
        "allow_scripts" => "`--allow-scripts` of `bloomery serve`",
        "mcp.command" => "`--mcp-command` of `bloomery serve`",
        "mcp.env" => "`--mcp-env` of `bloomery serve`",
        "mcp.url" => "`--mcp` of `bloomery serve`",
        "memory" => "`--memory` of `bloomery serve`",
        "model.api_key_file" => "`--api-key-file` of `bloomery serve`",
        "model.model" => "`--model` of `bloomery serve`",
        "model.model_url" => "`--model-url` of `bloomery serve`",
        "model.provider" => "`--provider` of `bloomery serve`",
        _ => return format!("`{field}`"),
    };
    name.to_owned()
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status;
        let mut response = (status, Json(&self)).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        if status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        headers.extend(self.retry_after.map(|seconds| (RETRY_AFTER, HeaderValue::from(seconds))));
        // The OpenAI front writes errors in another form.
        response.extensions_mut().insert(self);
        response
    }
}

/// Returns the problem of a path without a resource.
pub(crate) fn not_found(uri: &Uri) -> Problem {
    Problem::new(StatusCode::NOT_FOUND, format!("There is no {}.", uri.path()))
}

/// Returns the problem of a method that a resource does not have.
pub(crate) fn method_not_allowed(method: &Method, uri: &Uri) -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, format!("{} has no method {method}.", uri.path()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_embed::Error;
    use rstest::rstest;

    #[rstest]
    #[case::field("`options.limits` steps: must be more than 0", "`limits` steps: must be more than 0")]
    #[case::header("use another `options.run_key`", "use another `Idempotency-Key`")]
    #[case::resource("add `options.resources` notes=PATH.", "add to `resources` of `POST /api/chat`: notes=PATH.")]
    #[case::server("name another one with `options.memory`", "name another one with `--memory` of `bloomery serve`")]
    fn a_problem_names_what_the_client_or_the_server_has(#[case] message: &str, #[case] detail: &str) {
        assert_eq!(Problem::from(Error::invalid(message)).detail(), detail);
    }
}
