//! Answers which Skills the Job of a worker may invoke.

use super::auth::Caller;
use super::refusal::Refusal;
use crate::children::family::lineage;
use crate::children::refusal::ready_skill;
use crate::context::Context;
use crate::job::validate::open_revision;
use bloomery_crds::children::{MAX_PAGE, SkillPage, VisibleSkill, may_invoke};
use bloomery_crds::v1alpha1::{Job, JobStatus, Skill};
use kube::core::ResourceExt;

/// Returns the Skills after the name `after` that the Job of the caller may invoke now: those that its revision names and that are ready,
/// without those of the Job and of its ancestors.
///
/// # Errors
/// If the caller is not the recorded pod of a Job, or the revision of the Job cannot be read now.
pub(super) async fn page(context: &Context, caller: &Caller, after: &str) -> Result<SkillPage, Refusal> {
    let Some(job) = job_of(context, caller) else {
        return Err(Refusal::TooEarly("the pod is not recorded as an attempt of a Job yet: ask again".to_owned()));
    };
    let allowed = allowed_skills(context, &job).await?;
    let Some(lineage) = lineage(&context.caches, &job) else { return Ok(SkillPage::default()) };
    let is_listed = |name: &str| name > after && may_invoke(&allowed, name);
    let cached = context.caches.skills.select(&caller.namespace, |skill| is_listed(&skill.name_any()));
    let ready = cached.iter().filter_map(|skill| ready_skill(&skill.name_any(), Some(skill.as_ref())).ok());
    let mut others: Vec<&Skill> = ready.filter(|skill| !lineage.contains(&skill.name_any())).collect();
    others.sort_by_cached_key(|skill| skill.name_any());
    let has_more = others.len() > MAX_PAGE;
    // Only the Skills of the page are described.
    let shown = others.into_iter().take(MAX_PAGE);
    let skills: Vec<VisibleSkill> = shown.map(|skill| VisibleSkill::new(&skill.name_any(), &skill.spec)).collect();
    let next = skills.last().filter(|_| has_more).map(|last| last.name.clone());
    Ok(SkillPage { skills, next })
}

/// The unfinished Job whose attempt runs in the caller.
fn job_of(context: &Context, caller: &Caller) -> Option<Job> {
    let is_recorded = |status: &JobStatus| {
        let recorded = status.attempt.as_ref().and_then(|attempt| attempt.pod_uid.as_ref());
        !status.is_terminal() && recorded == Some(&caller.pod_uid)
    };
    let jobs = context
        .caches
        .jobs
        .select(&caller.namespace, |job| job.0.as_ref().is_ok_and(|job| job.status.as_ref().is_some_and(is_recorded)));
    jobs.first().and_then(|job| job.0.as_ref().ok().cloned())
}

/// Reads the Skills that the revision of a Job may invoke.
async fn allowed_skills(context: &Context, job: &Job) -> Result<Vec<String>, Refusal> {
    let revision = job.status.as_ref().and_then(|status| status.skill_revision.as_ref());
    let revision =
        revision.ok_or_else(|| Refusal::TooEarly("the revision of the Job is not recorded yet".to_owned()))?;
    let namespace = job.namespace().unwrap_or_default();
    let named = (namespace.as_str(), revision.name.as_str());
    let stored = context.recent_revisions.read(&context.client, &context.caches, named).await;
    let stored = stored.map_err(|error| Refusal::Unavailable(format!("the revision cannot be read now: {error}")))?;
    let compiled = open_revision(revision, stored.as_deref()).map_err(|wait| Refusal::Unavailable(wait.message))?;
    Ok(compiled.spec.skills)
}

#[cfg(test)]
mod tests;
