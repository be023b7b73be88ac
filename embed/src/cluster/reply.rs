//! Appends replies to the replies of a Job. Other users may append replies at the same time.

use super::compose_reply;
use super::jobs::Client;
use crate::error::{Error, ErrorKind};
use bloomery_crds::v1alpha1::{Job, Reply};
use kube::ResourceExt;
use serde_json::json;

/// The maximum number of attempts to append a reply. An attempt fails if the Job has changed, and the status of a running Job
/// changes often.
const MAX_ATTEMPTS: usize = 16;

/// Appends a reply. If the Job has changed meanwhile, checks that the reply is still possible, and tries again.
///
/// # Errors
/// If the Job does not accept the reply, or the API server refuses it.
pub async fn append(client: &Client, mut job: Job, reply: &Reply) -> Result<Job, Error> {
    let (name, before) = (job.name_any(), job.spec.replies.len());
    // True if the question already had an answer before. The user was warned, so the reply is sent nevertheless.
    let is_second_answer =
        reply.question.as_deref().is_some_and(|id| compose_reply::pending_answer(&job, id).is_some());
    for _ in 0..MAX_ATTEMPTS {
        let replies = [job.spec.replies.as_slice(), std::slice::from_ref(reply)].concat();
        let unchanged_only = true;
        match client.patch(&job, json!({ "spec": { "replies": replies } }), unchanged_only).await {
            Ok(changed) => return Ok(changed),
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => return Err(client.patch_error(&name, &format!("replying to {name}"), &error).await),
        }
        job = client.reread(&job).await?;
        // The API server may have stored the reply in an earlier attempt whose response was lost.
        if job.spec.replies.iter().skip(before).any(|sent| sent == reply) {
            return Ok(job);
        }
        if is_second_answer {
            compose_reply::check_accepts_replies(&job)?;
        } else {
            compose_reply::check_still_open(&job, reply)?;
        }
    }
    let message = format!("the Job {name} changed too often: nothing was sent. Try again");
    Err(Error::new(ErrorKind::Unavailable, message))
}
