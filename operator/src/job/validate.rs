//! Validates and resolves the inputs of a new attempt: pure. The message of each wait names the missing input and the
//! remedy.

mod attempt;
mod models;
mod network;
mod resources;
mod revision;
mod sidecar;

pub use attempt::{BoundResources, Continued, Filesystem, ValidAttempt};
pub use models::resolve_models;
pub(crate) use resources::is_single_node;
pub use revision::open_revision;

use super::fetch::FetchedJob;
use super::fetch::attempt::AttemptSources;
use super::plan::{Blocked, JobEnd, Wait};
use super::{approved_call, asked_calls};
use crate::caches::Guarded;
use crate::external_mcp::resolve_external_mcp;
use crate::network::egress::Egress;
use crate::owned;
use crate::settings::Settings;
use bloomery_crds::conditions::Reason;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::names;
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_crds::report;
use bloomery_crds::run::{JobIdentity, ReportEndpoint};
use bloomery_crds::v1alpha1::{Job, JobStatus, RevisionRef};
use k8s_openapi::jiff::SignedDuration;
use network::Connections;

/// The interval for checking the CA of the report endpoint again: it is not watched.
const CA_RETRY_INTERVAL: SignedDuration = SignedDuration::from_secs(5);

/// The interval for checking the admission policy again, for a Job that does not wait for people.
const POLICY_RETRY_INTERVAL: SignedDuration = SignedDuration::from_secs(30);

/// The wait of a Job whose worker needs decisions, while the admission policy that protects them is not in force.
fn policy_wait(why: String) -> Wait {
    Wait::new(Reason::ApprovalPolicyMissing, why).retry_after(POLICY_RETRY_INTERVAL)
}

/// Turns a Job and the inputs of its next attempt into the one value that the pod is built from.
#[expect(clippy::too_many_lines, reason = "the list of all inputs and all parts of an attempt")]
pub fn validate(fetched: &FetchedJob, sources: AttemptSources, settings: &Settings) -> Result<ValidAttempt, Blocked> {
    // Without `..`, so that a new input does not compile here until it is used.
    let AttemptSources {
        attempt,
        after_disruption,
        revision,
        models: all_models,
        services,
        claims,
        continued,
        decisions,
        tenant_tools,
        depth,
        children,
        report_ca,
    } = sources;
    let FetchedJob { job, namespace, name, uid, status, .. } = fetched;
    if needs_template(fetched, settings) {
        return Err(Blocked::NoSkill);
    }
    let (revision, compiled) = revision::resolve_revision(fetched, revision.as_deref())?;
    let report = report_endpoint(settings, report_ca)?;
    let server = compiled.spec.mcp_server.as_ref();
    let bound = resources::check_memory_scope(&compiled.spec, &job.spec)
        .and_then(|()| resources::resolve_resources(&compiled.spec.resources, server, &job.spec.resources, &claims))
        .map_err(|wait| blocked_by_bindings(status, wait))?;
    let find_service = |name: &str| services.get(name).cloned();
    let egress = Egress::new(settings, namespace, &find_service);
    network::check_bound_apis(&bound.resources, &egress)?;
    let of_revision = (&compiled.spec, revision.name.as_str());
    let sidecars = sidecar::resolve_sidecars(of_revision, &job.spec.resources, &settings.mcp)?;
    let models = resolve_models(&compiled.spec.model_names(), |name| all_models.get(name).cloned())?;
    let owner = owned::owner_reference(job);
    let owner = owner.ok_or_else(|| Wait::new(Reason::Invalid, format!("the Job {name} has no UID")))?;
    let skill_limits = compiled.spec.limits();
    let limits = EffectiveLimits::resolve(skill_limits, job.spec.limits.as_ref());
    let pins = revision::pins(&compiled.spec, fetched.skill.as_deref());
    let approvals = decisions.map_err(policy_wait)?;
    let spent_seconds = status.usage.as_ref().map_or(0, |usage| usage.seconds);
    let identity = JobIdentity { namespace: namespace.clone(), name: name.clone(), uid: uid.clone() };
    let connections = Connections { compiled: &compiled.spec, models: &models, bound: &bound.resources };
    let (connects_to, of_job) = network::separate(fetched.skill.as_deref(), &connections, &all_models);
    let network_policy = network::job_policy((&identity, &owner), &job.spec.skill, &of_job, &egress);
    Ok(ValidAttempt {
        job: identity,
        connects_to,
        network_policy,
        shared_hosts: settings.network.shared_hosts(),
        denied_ranges: settings.network.deny.clone(),
        run_key: job.spec.run_key.clone(),
        owner,
        goal: job.spec.goal.clone(),
        validates: job.spec.validates(),
        number: attempt,
        after_disruption,
        skill: job.spec.skill.clone(),
        revision,
        limits,
        lowered_limits: EffectiveLimits::lowered(skill_limits, job.spec.limits.as_ref()),
        remaining_seconds: limits.duration_seconds.saturating_sub(spent_seconds),
        models,
        pod: compiled.spec.pods.as_ref().and_then(|pods| pods.worker.clone()),
        external_mcp: resolve_external_mcp(server),
        sidecars,
        bound,
        log: status.log.clone(),
        void_approvals: approved_call::void(status.approved_call.as_ref(), &approvals),
        approved_call: approved_call::with_passed(status.approved_call.as_ref(), &approvals),
        approvals,
        asked: asked_calls::recorded(status),
        continues: resolve_continued_job(job, status, continued.as_deref())?,
        memory_scope: job.spec.memory_scope.clone(),
        replies: fetched.pending_replies().collect(),
        pins,
        tenant_tools,
        depth,
        children,
        child_wait_seconds: settings.jobs.child_wait_seconds(),
        report,
        memory_single_node: resources::is_single_node(claims.get(names::MEMORY_CLAIM).map(AsRef::as_ref)),
    })
}

/// Returns whether the Skill of a Job that has not started does not exist, and may be created from a template.
fn needs_template(fetched: &FetchedJob, settings: &Settings) -> bool {
    let FetchedJob { job, status, skill, .. } = fetched;
    let is_missing = skill.is_none() && status.skill_revision.is_none();
    is_missing && settings.skill_templates.is_some() && job.bootstraps_skill()
}

/// Returns the address of the report endpoint and its CA, once the CA exists.
fn report_endpoint(settings: &Settings, ca: Option<String>) -> Result<ReportEndpoint, Wait> {
    if let Some(ca) = ca {
        return Ok(ReportEndpoint { url: format!("{}{}", settings.report_url(), report::PATH), ca });
    }
    let message = format!(
        "the operator has no usable CA for its report endpoint, so workers cannot report. The Job starts by itself \
         once there is one. If this persists, the operator's log shows the cause. To replace the CA, \
         delete the data of the Secret {}/{}: the operator fills it again",
        settings.pod_namespace, settings.report.ca_secret
    );
    Err(Wait::new(Reason::ReportUnavailable, message).retry_after(CA_RETRY_INTERVAL))
}

/// Decides how to continue a Job whose bindings cannot be resolved. A Job whose claims are missing waits.
///
/// If the bindings do not fit the Skill, a Job without a revision waits, because an edit of the Skill may fix the fault.
/// A Job with a revision ends, because its revision and its bindings are immutable: this happens only after an upgrade to
/// an operator with stricter rules.
fn blocked_by_bindings(status: &JobStatus, wait: Wait) -> Blocked {
    match &status.skill_revision {
        Some(RevisionRef { name, .. }) if wait.reason == Reason::ResourcesInvalid => {
            let message = format!(
                "the bindings of the Job do not fit the revision {name} that it runs on: create another Job. {}",
                wait.message
            );
            Blocked::Never(JobEnd::decided(Outcome::new(OutcomeCode::UserNeeded, message)))
        }
        _ => Blocked::Wait(wait),
    }
}

/// Resolves the Job that this one continues. After the first pod was created, the status records the UID and the run key of that Job.
fn resolve_continued_job(
    job: &Job,
    status: &JobStatus,
    continued: Option<&Guarded<Job>>,
) -> Result<Option<Continued>, Wait> {
    let Some(name) = &job.spec.continues else { return Ok(None) };
    let (uid, run_key) = match &status.continued_uid {
        Some(uid) => (uid.clone(), status.continued_run_key.clone()),
        None => keys_of_ended_job(name, &job.spec.skill, continued)?,
    };
    Ok(Some(Continued { name: name.clone(), uid, run_key }))
}

/// Returns the UID of the Job that another one continues, and the run key that its spec names. The continued Job must have ended. It
/// must belong to the same Skill, because the skill directory holds its conversation.
fn keys_of_ended_job(name: &str, skill: &str, job: Option<&Guarded<Job>>) -> Result<(String, Option<String>), Wait> {
    let wait = |message: String| Err(Wait::new(Reason::ContinuedNotEnded, message));
    let job = match job.map(|job| &job.0) {
        None => {
            return wait(format!(
                "the Job {name}, which this one continues, does not exist: create it, or create this one without `continues`"
            ));
        }
        Some(Err(error)) => {
            let error = &error.error;
            return wait(format!("the Job {name} cannot be read by this version of the operator: {error}"));
        }
        Some(Ok(job)) => job,
    };
    if job.spec.skill != skill {
        let other_skill = &job.spec.skill;
        return wait(format!(
            "the Job {name} belongs to the Skill {other_skill}, and a Job can only continue one of its own Skill: create another Job"
        ));
    }
    match (&job.metadata.uid, job.status.as_ref().is_some_and(JobStatus::is_terminal)) {
        (Some(uid), true) => Ok((uid.clone(), job.spec.run_key.clone())),
        _ => wait(format!(
            "the Job {name}, which this one continues, has not ended: this one starts by itself once it has"
        )),
    }
}

#[cfg(test)]
mod tests;
