//! Reads Jobs and Skills.

use crate::path::Segments;
use crate::problem::Problem;
use crate::session::Session;
use axum::Json;
use axum::http::StatusCode;
use bloomery_embed::{JobStatus, JobSummary, Runtime, SkillState, SkillTool, Tenant};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// A list.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct List<T> {
    /// The items.
    items: Vec<T>,
}

/// Lists the Jobs.
pub(crate) async fn jobs<R: Runtime>(session: Session<R>) -> Result<Json<List<JobSummary>>, Problem> {
    Ok(Json(List { items: session.tenant.jobs().await? }))
}

/// Returns the state of a Job.
pub(crate) async fn status<R: Runtime>(
    session: Session<R>,
    Segments(job): Segments<String>,
) -> Result<Json<JobStatus>, Problem> {
    Ok(Json(session.tenant.status(&job).await?))
}

/// Returns a projection of a Job.
pub(crate) async fn projection<R: Runtime>(
    session: Session<R>,
    Segments((job, key)): Segments<(String, String)>,
) -> Result<Json<Value>, Problem> {
    let tenant = &session.tenant;
    match key.as_str() {
        "status" => json(&tenant.status(&job).await?),
        "timeline" => json(&List { items: tenant.timeline(&job).await? }),
        "context" => json(&tenant.model_context(&job).await?),
        "workflows" => json(&List { items: tenant.status(&job).await?.status.workflows }),
        "requests" => json(&tenant.open_requests(&job).await?),
        _ => {
            let known = "status, timeline, context, workflows, requests";
            Err(Problem::new(StatusCode::NOT_FOUND, format!("There is no such projection. There are {known}.")))
        }
    }
}

/// Lists the Skills.
pub(crate) async fn skills<R: Runtime>(session: Session<R>) -> Result<Json<List<SkillState>>, Problem> {
    Ok(Json(List { items: session.tenant.skills().await? }))
}

/// Lists the tools of a Skill.
pub(crate) async fn tools<R: Runtime>(
    session: Session<R>,
    Segments(skill): Segments<String>,
) -> Result<Json<List<SkillTool>>, Problem> {
    Ok(Json(List { items: session.tenant.tools(&skill).await? }))
}

fn json(value: &impl Serialize) -> Result<Json<Value>, Problem> {
    let written = serde_json::to_value(value);
    written.map(Json).map_err(|error| Problem::new(StatusCode::INTERNAL_SERVER_ERROR, error.to_string()))
}
