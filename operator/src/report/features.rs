//! Records the results of a Job that validates its Skill in the status of the Skill.

use super::MAX_WRITE_TRIES;
use super::refusal::Refusal;
use crate::context::Context;
use crate::events::EventMessage;
use crate::metrics::SkillKey;
use bloomery_crds::conditions::Reason;
use bloomery_crds::report::Report;
use bloomery_crds::v1alpha1::{FeatureResult, FeatureStatus, Job, Skill, SkillStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use kube::Api;

/// The results of a Job.
struct Tested<'a> {
    job: &'a str,
    /// The name of the tested revision.
    revision: &'a str,
    results: &'a [FeatureResult],
}

/// Records the results of a Job that has ended. Does nothing for a Job that does not validate its Skill, and repeats nothing.
///
/// # Errors
/// If the Skill cannot be read or written now: the worker reports again.
pub async fn record(context: &Context, job: &Job, report: &Report) -> Result<(), Refusal> {
    let revision = job.status.as_ref().and_then(|status| status.skill_revision.as_ref());
    let Some(revision) = revision.filter(|_| job.spec.validates() && !report.projection.features.is_empty()) else {
        return Ok(());
    };
    let (namespace, name) = (&report.job.namespace, &job.spec.skill);
    let tested = Tested { job: &report.job.name, revision: &revision.name, results: &report.projection.features };
    let skills: Api<Skill> = Api::namespaced(context.client.clone(), namespace);
    for _ in 0..MAX_WRITE_TRIES {
        let stored = skills.get_opt(name).await;
        let stored = stored.map_err(|error| Refusal::Unavailable(format!("the Skill cannot be read now: {error}")))?;
        // The Job of a deleted Skill ends all the same.
        let Some(skill) = stored else { return Ok(()) };
        let before = skill.status.clone().unwrap_or_default();
        let features = merged(&before.features, &tested, &Time(Timestamp::now()));
        let lost = lost_features(&before.features, &features);
        match context.statuses.replace(&skill, SkillStatus { features, ..before }).await {
            Ok(None) => return Ok(()),
            Ok(Some(_)) => {
                if !lost.is_empty() {
                    context.events.publish(&skill, EventMessage::warning(Reason::FeatureFailed, lost.join(" "))).await;
                }
                let skill_key = SkillKey { namespace: namespace.clone(), skill: name.clone() };
                for result in tested.results {
                    context.metrics.count_feature_test(&skill_key, if result.passed { "passed" } else { "failed" });
                }
                return Ok(());
            }
            Err(error) if error.is_conflict() => {}
            Err(error) => return Err(Refusal::Unavailable(format!("the Skill cannot be written now: {error}"))),
        }
    }
    Err(Refusal::Unavailable("the status of the Skill was changed at every try: report again".to_owned()))
}

/// Returns the recorded results with those of a Job. A result that is recorded already keeps its time.
fn merged(recorded: &[FeatureStatus], tested: &Tested<'_>, now: &Time) -> Vec<FeatureStatus> {
    let &Tested { job, revision, results } = tested;
    let recorded_of = |name: &str| recorded.iter().find(|recorded| recorded.name == name);
    let status = |result: &FeatureResult| {
        let status = FeatureStatus::new(result.clone(), revision, job, now.clone());
        let earlier = recorded_of(&status.name).map(|earlier| earlier.time.clone());
        let at_earlier_time = earlier.map(|time| FeatureStatus { time, ..status.clone() });
        at_earlier_time.filter(|same| recorded_of(&same.name) == Some(same)).unwrap_or(status)
    };
    FeatureStatus::merge(recorded, results.iter().map(status).collect())
}

/// Returns a sentence for each feature that passed before, and does not pass any more.
fn lost_features(before: &[FeatureStatus], after: &[FeatureStatus]) -> Vec<String> {
    let passed_before = |name: &str| before.iter().find(|earlier| earlier.name == name && earlier.passed);
    let sentence = |failed: &FeatureStatus| {
        let earlier = passed_before(&failed.name)?;
        let FeatureStatus { name, job, revision, reason, .. } = failed;
        let reason = reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
        let passed_on = &earlier.revision;
        Some(format!("The feature {name} failed in the Job {job} on {revision}, and passed on {passed_on}{reason}."))
    };
    after.iter().filter(|result| !result.passed).filter_map(sentence).collect()
}

#[cfg(test)]
mod tests;
