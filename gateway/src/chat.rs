//! Starts Jobs.

use crate::body::Body;
use crate::events;
use crate::problem::Problem;
use crate::session::Session;
use axum::Json;
use axum::http::header::{ACCEPT, HeaderValue, LOCATION};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use bloomery_crds::Digest;
use bloomery_crds::v1alpha1::Limits;
use bloomery_embed::{Cursor, Error, ErrorKind, NewJob, Runtime, Tenant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The resource that `projectPath` binds.
const CODEBASE: &str = "codebase";

/// The header with a key that makes a repeated request harmless.
const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// The longest idempotency key, in bytes.
const MAX_KEY_BYTES: usize = 255;

/// The number of hex digits of a digest that a key of a Job has.
const KEY_DIGITS: usize = 40;

/// A request to start a Job.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ChatRequest {
    /// The goal.
    #[schemars(regex(pattern = r"\S"))]
    goal: String,
    /// The name of the Skill.
    #[schemars(length(max = 50), regex(pattern = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"))]
    skill_slug: Option<String>,
    /// The values of the resources.
    #[serde(default)]
    resources: BTreeMap<String, String>,
    /// The value of the resource `codebase`.
    project_path: Option<String>,
    /// Limits that are lower than those of the Skill.
    limits: Option<Limits>,
    /// The key of an ended Job that this one continues.
    #[schemars(regex(pattern = r"^[-a-z0-9]{1,63}$"))]
    continues: Option<String>,
}

/// The response to a request that started a Job.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct Started {
    /// The key of the Job.
    job: String,
}

impl ChatRequest {
    /// Returns the Job to start.
    ///
    /// # Errors
    /// If `codebase` is bound twice.
    fn into_job(self, key: Option<String>) -> Result<NewJob, Problem> {
        let Self { goal, skill_slug, mut resources, project_path, limits, continues } = self;
        if let Some(path) = project_path
            && resources.insert(CODEBASE.to_owned(), path).is_some()
        {
            let detail = "projectPath binds the resource codebase, which resources binds too: leave one of them out.";
            return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
        }
        Ok(NewJob { goal, skill: skill_slug, resources, limits, key, continues })
    }
}

/// Starts a Job. The response is its events if the client accepts them, or else the location of the Job.
pub(crate) async fn start<R: Runtime>(
    session: Session<R>,
    headers: HeaderMap,
    Body(request): Body<ChatRequest>,
) -> Result<Response, Problem> {
    let key = run_key(&headers, &session.user)?;
    let has_key = key.is_some();
    let follows = accepts_events(&headers);
    if follows {
        session.tenant.check_following().await?;
    }
    let started = session.tenant.start(request.into_job(key)?).await;
    let job = started.map_err(|error| start_problem(error, has_key))?;
    let location = session.location(&job);
    if !follows {
        return Ok((StatusCode::ACCEPTED, [(LOCATION, location)], Json(Started { job })).into_response());
    }
    let mut response = events::stream(&session.tenant, &job, Cursor::START).await?;
    if let Ok(location) = HeaderValue::from_str(&location) {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

/// Returns the problem of a Job that could not be started. With an idempotency key, a conflict says that an earlier request with the same key
/// had another body.
pub(crate) fn start_problem(error: Error, has_idempotency_key: bool) -> Problem {
    match error.kind {
        ErrorKind::Conflict if has_idempotency_key => {
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, Problem::from(error).detail())
        }
        _ => Problem::from(error),
    }
}

/// Returns whether the client accepts server-sent events.
fn accepts_events(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let mut types = accepted.flat_map(|value| value.split(',')).filter_map(|part| part.split(';').next());
    types.any(|name| name.trim().eq_ignore_ascii_case("text/event-stream"))
}

/// Returns the key of the Job for an idempotency key of a user.
///
/// # Errors
/// If the header is invalid.
pub(crate) fn run_key(headers: &HeaderMap, user: &str) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get(IDEMPOTENCY_KEY) else { return Ok(None) };
    let is_visible = |key: &&str| key.bytes().all(|byte| byte.is_ascii_graphic());
    let key = value.to_str().ok().filter(|key| (1..=MAX_KEY_BYTES).contains(&key.len())).filter(is_visible);
    let Some(key) = key else {
        let detail = format!("The header Idempotency-Key must have 1 to {MAX_KEY_BYTES} visible ASCII characters.");
        return Err(Problem::new(StatusCode::BAD_REQUEST, detail));
    };
    // Header values have no line break, so no two pairs have the same text.
    let digest = Digest::of_bytes(format!("{key}\n{user}").as_bytes());
    Ok(Some(format!("i-{}", digest.short(KEY_DIGITS))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::events("text/event-stream", true)]
    #[case::one_of_several("application/json, Text/Event-Stream;q=0.9", true)]
    #[case::anything("*/*", false)]
    #[case::json("application/json", false)]
    fn a_client_must_ask_for_events(#[case] accept: &'static str, #[case] expected: bool) {
        assert_eq!(accepts_events(&HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(accept))])), expected);
        assert!(!accepts_events(&HeaderMap::new()));
    }

    #[test]
    fn the_key_of_a_job_depends_on_the_key_and_the_user() {
        let key = |key: &'static str, user: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(IDEMPOTENCY_KEY, HeaderValue::from_static(key));
            run_key(&headers, user).unwrap().unwrap()
        };
        assert_eq!(key("one", "ada"), key("one", "ada"));
        assert_ne!(key("one", "ada"), key("one", "eve"));
        assert_ne!(key("one", "ada"), key("two", "ada"));
        assert!(key("one", "ada").len() <= 63);
        assert_eq!(run_key(&HeaderMap::new(), "ada"), Ok(None));
    }
}
