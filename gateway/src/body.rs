//! The bodies of requests.

use crate::problem::Problem;
use axum::Json;
use axum::extract::{FromRequest, Request};
use axum::http::StatusCode;
use serde::de::DeserializeOwned;
use std::time::Duration;

/// The time for the body of a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A body of JSON. A refusal names the path of the field.
#[derive(Debug)]
pub(crate) struct Body<T>(pub(crate) T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, state: &S) -> Result<Self, Problem> {
        match tokio::time::timeout(TIMEOUT, Json::<T>::from_request(request, state)).await {
            Ok(Ok(Json(body))) => Ok(Self(body)),
            Ok(Err(rejection)) => Err(Problem::new(rejection.status(), rejection.body_text())),
            Err(_) => {
                let detail = format!("The body did not arrive within {TIMEOUT:?}.");
                Err(Problem::new(StatusCode::REQUEST_TIMEOUT, detail))
            }
        }
    }
}
