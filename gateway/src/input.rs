//! Sends the input of people to Jobs.

use crate::body::Body;
use crate::path::Segments;
use crate::problem::Problem;
use crate::session::Session;
use axum::http::StatusCode;
use bloomery_crds::Digest;
use bloomery_embed::{Input, Ruling, Runtime, Tenant};
use bloomery_engine::event::{CallId, QuestionId};
use schemars::JsonSchema;
use serde::Deserialize;

/// A reply, or a message.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ReplyRequest {
    /// The id of the question. Without one, the text is a message.
    question: Option<QuestionId>,
    /// The text.
    #[schemars(regex(pattern = r"\S"))]
    text: String,
}

/// A decision on a held call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DecisionRequest {
    /// The decision.
    decision: Ruling,
    /// The digest of the arguments that the person saw.
    digest: Digest,
    /// The approver for whom the person decides.
    approver: String,
    /// The reason.
    reason: Option<String>,
}

/// Answers a question, or sends a message.
pub(crate) async fn reply<R: Runtime>(
    session: Session<R>,
    Segments(job): Segments<String>,
    Body(ReplyRequest { question, text }): Body<ReplyRequest>,
) -> Result<StatusCode, Problem> {
    let input = match question {
        Some(question) => Input::Reply { question, text },
        None => Input::Message { text },
    };
    send(&session, &job, input).await
}

/// Decides on a held call.
pub(crate) async fn decide<R: Runtime>(
    session: Session<R>,
    Segments((job, call)): Segments<(String, String)>,
    Body(DecisionRequest { decision, digest, approver, reason }): Body<DecisionRequest>,
) -> Result<StatusCode, Problem> {
    let input = Input::Decision { call: CallId(call), digest, approver, ruling: decision, reason };
    send(&session, &job, input).await
}

/// Cancels a Job.
pub(crate) async fn cancel<R: Runtime>(
    session: Session<R>,
    Segments(job): Segments<String>,
) -> Result<StatusCode, Problem> {
    send(&session, &job, Input::Cancel).await
}

async fn send<R: Runtime>(session: &Session<R>, job: &str, input: Input) -> Result<StatusCode, Problem> {
    session.tenant.send(job, input).await?;
    Ok(StatusCode::ACCEPTED)
}
