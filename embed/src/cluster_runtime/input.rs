//! Sends the input of people to Jobs, as `kubectl bloomery reply`, `approve`, `deny` and `cancel` do.

use crate::cluster::jobs::Client;
use crate::cluster::{approvals, compose_reply, reply, state};
use crate::error::{Error, ErrorKind};
use crate::input::{Input, Ruling};
use bloomery_crds::Digest;
use bloomery_crds::names;
use bloomery_crds::v1alpha1::{ApprovalDecision, ApprovalVerdict, Job, Reply};
use jiff::Timestamp;
use kube::ResourceExt;

/// Sends input to a Job.
///
/// # Errors
/// If it changes nothing, or the API server refuses it.
pub(super) async fn send(client: Client, job: Job, input: Input) -> Result<(), Error> {
    match input {
        Input::Reply { question, text } => append(&client, job, Some(question.0), &text).await,
        Input::Message { text } => append(&client, job, None, &text).await,
        Input::Decision { call, digest, approver, ruling, reason } => {
            let held = HeldCall { call: call.0, digest, approver };
            decide(client, &job, held, ruling, reason).await
        }
        Input::Cancel => cancel(&client, &job).await,
    }
}

async fn cancel(client: &Client, job: &Job) -> Result<(), Error> {
    if state::has_ended(job) {
        let message = format!("the Job {} has ended, and accepts no input: {}", job.name_any(), state::summary(job));
        return Err(Error::too_late(message));
    }
    if job.spec.cancel == Some(true) {
        return Ok(());
    }
    client.cancel(job).await.map(drop)
}

/// Appends a reply, or a message if there is no question. The same answer again changes nothing.
async fn append(client: &Client, job: Job, question: Option<String>, text: &str) -> Result<(), Error> {
    let (text, _) = compose_reply::reply_text(None, text)?;
    if let Some(id) = &question {
        compose_reply::target(&job, Some(id.as_str()), false).map_err(|error| match error.kind {
            // The request is valid, but the question is not open.
            ErrorKind::Invalid => Error { kind: ErrorKind::Conflict, ..error },
            _ => error,
        })?;
        if compose_reply::pending_answer(&job, id).is_some_and(|pending| pending.text == text) {
            return Ok(());
        }
    }
    let reply = Reply { question, text };
    compose_reply::check_still_open(&job, &reply)?;
    reply::append(client, job, &reply).await.map(drop)
}

/// A held call, as a person saw it.
struct HeldCall {
    call: String,
    digest: Digest,
    approver: String,
}

/// Decides on the Approval of a call for an approver.
async fn decide(
    client: Client,
    job: &Job,
    held: HeldCall,
    ruling: Ruling,
    reason: Option<String>,
) -> Result<(), Error> {
    let HeldCall { call, digest, approver } = held;
    let uid = job.uid().unwrap_or_default();
    let name = names::approval(&job.name_any(), &uid, &call, &approver);
    let client = approvals::Client::new(client.cluster);
    let Some(approval) = client.get(&name).await?.filter(|found| found.spec.job_uid == uid) else {
        let message = format!(
            "the call {call} of the Job {} does not wait for {approver}: read the open requests of the Job again",
            job.name_any()
        );
        return Err(Error::new(ErrorKind::Conflict, message));
    };
    if approval.spec.arguments_digest != digest {
        let message = format!("the call {call} has other arguments now: read them, and decide again");
        return Err(Error::new(ErrorKind::Conflict, message));
    }
    if let Some(reason) = approvals::select::closed_reason(&approval, Timestamp::now()) {
        return Err(Error::too_late(format!("{name} {reason}")));
    }
    client.check_job_of(&approval).await?;
    let verdict = match ruling {
        Ruling::Approve => ApprovalVerdict::Approve,
        Ruling::Deny => ApprovalVerdict::Deny,
    };
    let by = client.cluster.user().await?;
    let reason = reason.filter(|reason| !reason.is_empty());
    client.decide(&approval, ApprovalDecision { verdict, by, reason }).await.map(drop)
}
