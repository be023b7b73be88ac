//! Errors in OpenAI's shape.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

/// An error that the client reads as it reads OpenAI's.
#[derive(Debug)]
pub(super) struct ApiError {
    status: StatusCode,
    message: String,
    code: Option<&'static str>,
    retry_after: Option<u64>,
}

impl ApiError {
    pub(super) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), code: None, retry_after: None }
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, message)
    }

    pub(super) fn wrong_key() -> Self {
        let error = Self::new(StatusCode::UNAUTHORIZED, "Incorrect API key provided.");
        Self { code: Some("invalid_api_key"), ..error }
    }

    pub(super) fn unknown_model(name: &str) -> Self {
        let error = Self::new(StatusCode::NOT_FOUND, format!("The model `{name}` does not exist."));
        Self { code: Some("model_not_found"), ..error }
    }

    /// The error that a script asks for.
    pub(super) fn scripted(status: StatusCode, retry_after: Option<u64>) -> Self {
        let code = match status {
            StatusCode::UNAUTHORIZED => Some("invalid_api_key"),
            StatusCode::TOO_MANY_REQUESTS => Some("rate_limit_exceeded"),
            _ => None,
        };
        Self { code, retry_after, ..Self::new(status, "As the script says.") }
    }

    pub(super) fn body(&self) -> Value {
        let kind = match self.status {
            StatusCode::TOO_MANY_REQUESTS => "requests",
            status if status.is_server_error() => "server_error",
            _ => "invalid_request_error",
        };
        json!({"error": {"message": self.message, "type": kind, "param": null, "code": self.code}})
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let mut response = (self.status, Json(self.body())).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        response
    }
}
