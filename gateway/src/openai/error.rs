//! Errors, in the form of the API of OpenAI.

use crate::problem::Problem;
use axum::Json;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};

/// The beginning of the paths of this front.
const PREFIX: &str = "/v1/";

/// The body of an error.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ErrorBody {
    /// The error.
    error: ErrorDetails,
}

/// An error.
#[derive(Debug, Serialize, JsonSchema)]
struct ErrorDetails {
    /// The description for people.
    message: String,
    /// The kind.
    #[serde(rename = "type")]
    #[schemars(with = "String")]
    kind: &'static str,
    /// Always null: the message names the field.
    param: Option<String>,
    /// The code for programs.
    #[schemars(with = "Option<String>")]
    code: Option<&'static str>,
}

/// Writes the problems of this front in the form of the API of OpenAI. Status and headers stay.
pub(crate) async fn convert(request: Request, next: Next) -> Response {
    let is_of_front = request.uri().path().starts_with(PREFIX);
    let response = next.run(request).await;
    let problem = response.extensions().get::<Problem>().filter(|_| is_of_front).cloned();
    let Some(problem) = problem else { return response };
    let (mut parts, _) = response.into_parts();
    let (converted, body) = Json(body(&problem)).into_response().into_parts();
    for header in [CONTENT_TYPE, CONTENT_LENGTH] {
        parts.headers.remove(&header);
    }
    parts.headers.extend(converted.headers);
    Response::from_parts(parts, body)
}

/// Returns the body of a problem.
pub(super) fn body(problem: &Problem) -> Value {
    let (kind, code) = match problem.status() {
        StatusCode::UNAUTHORIZED => ("invalid_request_error", Some("invalid_api_key")),
        StatusCode::FORBIDDEN => ("permission_error", Some("permission_denied")),
        StatusCode::NOT_FOUND => ("invalid_request_error", Some("model_not_found")),
        StatusCode::TOO_MANY_REQUESTS => ("requests", Some("rate_limit_exceeded")),
        StatusCode::SERVICE_UNAVAILABLE => ("server_error", Some("service_unavailable")),
        status if status.is_server_error() => ("server_error", None),
        _ => ("invalid_request_error", None),
    };
    let error = ErrorDetails { message: problem.detail().to_owned(), kind, param: None, code };
    json!(ErrorBody { error })
}
