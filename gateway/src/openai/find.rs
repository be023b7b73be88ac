//! Finds the Job that produced an answer of a chat.
//!
//! Its key begins with a digest of the user, the Skill, the messages of the application, and the turns of the user up to the one that
//! started it. It must also have produced the answer: the answer has the digest of its result, or contains its key, as the answer of a Job
//! that waits for a person does. If several Jobs fit, or too many have to be read, none is found.

use super::answer;
use super::turns::{Turns, unique_part};
use crate::problem::Problem;
use bloomery_embed::{JobSummary, Tenant};

/// The largest number of Jobs whose state is read.
const MAX_READ: usize = 32;

/// The Job that produced the answer before the last message.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The answer is the Job's last one: the Job has ended.
    Answered(String),
    /// The answer said that the Job waits for a person.
    Waiting(String),
}

/// Finds the Job that produced the answer before the last message, if exactly one fits.
pub(super) async fn find<T: Tenant>(tenant: &T, turns: &Turns) -> Result<Option<Found>, Problem> {
    let prefixes = turns.earlier_prefixes();
    if prefixes.is_empty() {
        return Ok(None);
    }
    let jobs = tenant.jobs().await?;
    for prefix in prefixes {
        let fits = |summary: &&JobSummary| summary.skill == turns.skill() && summary.job.starts_with(&prefix);
        let keys: Vec<&str> = jobs.iter().filter(fits).map(|summary| summary.job.as_str()).collect();
        if keys.len() > MAX_READ {
            return Ok(None);
        }
        let mut found = Vec::new();
        for key in keys {
            found.extend(producer(tenant, key, turns.answer_before()).await?);
        }
        if let Some(only) = found.pop() {
            return Ok(found.is_empty().then_some(only));
        }
    }
    Ok(None)
}

/// Returns the Job if it produced an answer.
async fn producer<T: Tenant>(tenant: &T, key: &str, said: &str) -> Result<Option<Found>, Problem> {
    let status = tenant.status(key).await?;
    Ok(if answer::is_last_answer(&status, said) {
        Some(Found::Answered(key.to_owned()))
    } else {
        said.contains(key).then(|| Found::Waiting(key.to_owned()))
    })
}

/// Returns whether another chat has used the idempotency key of a key of a Job.
pub(super) async fn is_used<T: Tenant>(tenant: &T, key: &str) -> Result<bool, Problem> {
    let jobs = tenant.jobs().await?;
    Ok(jobs.iter().any(|summary| summary.job != key && unique_part(&summary.job) == unique_part(key)))
}
