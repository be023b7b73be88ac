//! How an attempt starts: everything that its pod needs is gathered and checked, then the pod is made under its
//! one possible name.

use super::applied::{StartedPod, Wait};
use super::build::{self, ValidAttempt};
use super::decide::End;
use super::fetch::{Fetched, stored_pod};
use super::validate;
use crate::approval::standing::wanted_of;
use crate::approval::{names_of, settle};
use crate::context::Context;
use crate::error::Error;
use crate::owned;
use bloomery_crds::conditions::Reason;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::names;
use bloomery_crds::outcome::{Outcome, OutcomeCode};
use bloomery_crds::report;
use bloomery_crds::run::{ContinuedJob, GivenDecision, JobIdentity, ReportEndpoint, Revision};
use bloomery_crds::v1alpha1::{Job, RevisionRef};
use k8s_openapi::api::core::v1::{ConfigMap, Pod};
use k8s_openapi::jiff::SignedDuration;
use kube::Api;
use kube::core::ResourceExt;

/// What came of starting an attempt.
#[derive(Debug, Clone, PartialEq)]
pub enum Started {
    /// Its pod is there.
    Made(StartedPod),
    /// Something that it needs is not there. Tried again by itself after a time, where no change would tell.
    Waits(Wait, Option<SignedDuration>),
    /// It can never start.
    Over(End),
    /// The operator is not ready itself, or knows too little of the Job.
    Later(SignedDuration),
}

/// Nothing tells when a namesake goes, or a quota is raised.
const UNTOLD: SignedDuration = SignedDuration::from_secs(60);

/// How soon the CA of the report endpoint is looked for again: nothing tells when there is one.
const UNTRUSTED: SignedDuration = SignedDuration::from_secs(5);

/// The operator will know better in a moment.
const MOMENT: SignedDuration = SignedDuration::from_secs(1);

/// Starts an attempt, or says what it waits for.
///
/// After a crash between the making of a pod and the writing of the status, the pod is found and taken over.
pub async fn start(context: &Context, seen: &Fetched, attempt: u32) -> Result<Started, Error> {
    let skill = seen.skill.as_deref();
    let revision = match &seen.status.skill_revision {
        Some(revision) => Ok(revision.clone()),
        None => validate::current_revision(&seen.job.spec.skill, skill),
    };
    let revision = match revision {
        Ok(revision) => revision,
        Err(wait) => return Ok(Started::Waits(wait, None)),
    };
    let stored = stored_revision(context, &seen.namespace, &revision).await?;
    let compiled = match validate::revision(&revision, stored.as_ref()) {
        Ok(compiled) => compiled,
        Err(wait) if stored.is_some() => return Ok(Started::Waits(wait, None)),
        Err(wait) => return Ok(without_revision(seen, &revision, wait)),
    };
    let Some(trusted) = context.report_trust.bundle() else {
        return Ok(Started::Waits(untrusted(context), Some(UNTRUSTED)));
    };
    let inputs = match inputs(context, seen, (attempt, revision, &compiled), trusted) {
        Ok(inputs) => ValidAttempt { approvals: decided(context, seen).await?, ..inputs },
        Err(wait) => return Ok(unmet(seen, wait)),
    };
    if !is_current(context, seen).await? {
        return Ok(Started::Later(MOMENT));
    }
    make(context, seen, &inputs).await
}

/// What becomes of a Job whose revision is gone: it is made anew of the Skill, if that is still the same.
fn without_revision(seen: &Fetched, revision: &RevisionRef, wait: Wait) -> Started {
    let current = validate::current_revision(&seen.job.spec.skill, seen.skill.as_deref());
    match current {
        Ok(current) if current.digest != revision.digest => {
            let message =
                format!("{}: the Skill was deleted and made again, or the ConfigMap was deleted", wait.message);
            Started::Over(End { outcome: Outcome::new(OutcomeCode::SkillDeleted, message), read_from: None })
        }
        _ => Started::Waits(wait, Some(UNTOLD)),
    }
}

/// What becomes of a Job that cannot have a pod now.
///
/// Bindings that do not fit are healed by another Skill, as long as the Job has no revision. With one, both sides
/// are immutable: only an operator with stricter rules than the one before finds that, and a person has to decide.
fn unmet(seen: &Fetched, wait: Wait) -> Started {
    match &seen.status.skill_revision {
        Some(revision) if wait.reason == Reason::ResourcesInvalid => {
            let message = format!(
                "what the Job binds does not fit the revision {} that it runs on: make another Job. {}",
                revision.name, wait.message
            );
            Started::Over(End { outcome: Outcome::new(OutcomeCode::UserNeeded, message), read_from: None })
        }
        _ => Started::Waits(wait, None),
    }
}

fn inputs(
    context: &Context,
    seen: &Fetched,
    (attempt, revision, compiled): (u32, RevisionRef, &Revision),
    trusted: String,
) -> Result<ValidAttempt, Wait> {
    let Fetched { job, namespace, name, uid, status, .. } = seen;
    let bound = validate::resources(&compiled.spec.resources, &job.spec.resources, |name| {
        context.caches.claims.get(namespace, name)
    })?;
    let models = validate::models(&compiled.spec.model_names(), |model| context.caches.models.get(namespace, model))?;
    let of_skill = compiled.spec.engine.as_ref().and_then(|engine| engine.limits.as_ref());
    let limits = EffectiveLimits::resolve(of_skill, job.spec.limits.as_ref());
    let spent = status.usage.as_ref().map_or(0, |usage| usage.seconds);
    let owner = owned::owner(job);
    let owner = owner.ok_or_else(|| Wait::new(Reason::Invalid, format!("the Job {name} has no UID")))?;
    Ok(ValidAttempt {
        job: JobIdentity { namespace: namespace.clone(), name: name.clone(), uid: uid.clone() },
        owner,
        goal: job.spec.goal.clone(),
        attempt,
        skill: job.spec.skill.clone(),
        revision,
        limits,
        remaining_seconds: limits.duration_seconds.saturating_sub(spent),
        models,
        bound,
        log: status.log.clone(),
        approvals: Vec::new(),
        continues: continued(context, seen)?,
        replies: build::that_fit(seen.unheard()),
        report: ReportEndpoint { url: format!("{}{}", context.settings.report_url(), report::PATH), ca: trusted },
        one_node: validate::is_of_one_node(context.caches.claims.get(namespace, names::MEMORY_CLAIM).as_deref()),
    })
}

/// The Job that this one continues: looked for until the first pod is made, and known from then on.
fn continued(context: &Context, seen: &Fetched) -> Result<Option<ContinuedJob>, Wait> {
    let Fetched { job, namespace, status, .. } = seen;
    let Some(continued) = &job.spec.continues else { return Ok(None) };
    let run_key = if let Some(uid) = &status.continued_uid {
        uid.clone()
    } else {
        let found = context.caches.jobs.get(namespace, continued);
        validate::continued(continued, &job.spec.skill, found.as_deref())?
    };
    Ok(Some(ContinuedJob { name: continued.clone(), run_key }))
}

/// What was decided of the call that the Job waits with, as far as its status knows: its worker may not have heard it yet.
async fn decided(context: &Context, seen: &Fetched) -> Result<Vec<GivenDecision>, Error> {
    let Some(call) = seen.status.waiting_for.as_ref().and_then(|waiting| waiting.call.as_ref()) else {
        return Ok(Vec::new());
    };
    let mut decided = Vec::new();
    for name in names_of(&seen.name, &seen.uid, call) {
        if let Some(wanted) = wanted_of(&seen.name, &seen.uid, call, &name) {
            decided.extend(settle::decision(context, &seen.namespace, &name, &wanted).await?);
        }
    }
    Ok(decided)
}

async fn stored_revision(
    context: &Context,
    namespace: &str,
    revision: &RevisionRef,
) -> Result<Option<ConfigMap>, Error> {
    let api: Api<ConfigMap> = Api::namespaced(context.client.clone(), namespace);
    let name = &revision.name;
    api.get_opt(name).await.map_err(Error::api(format!("read ConfigMap {namespace}/{name}")))
}

/// Whether the decision was made of the Job as it is stored: no pod for one that ended or was deleted meanwhile.
async fn is_current(context: &Context, seen: &Fetched) -> Result<bool, Error> {
    let api: Api<Job> = Api::namespaced(context.client.clone(), &seen.namespace);
    let what = format!("read Job {}/{}", seen.namespace, seen.name);
    let stored = api.get_metadata_opt(&seen.name).await.map_err(Error::api(what))?;
    Ok(stored.is_some_and(|stored| {
        stored.metadata.resource_version == seen.job.metadata.resource_version && stored.uid() == seen.job.uid()
    }))
}

async fn make(context: &Context, seen: &Fetched, inputs: &ValidAttempt) -> Result<Started, Error> {
    let part = match build::job_part(inputs) {
        Ok(part) => part,
        Err(wait) => return Ok(Started::Waits(wait, None)),
    };
    let wanted = build::pod(inputs, &context.settings.worker, &part);
    let (namespace, name) = (&seen.namespace, wanted.name_any());
    let api: Api<Pod> = Api::namespaced(context.client.clone(), namespace);
    context.metrics.wrote("Pod", "create");
    match api.create(&owned::posting(), &wanted).await {
        Ok(pod) => Ok(made(&pod, inputs)),
        Err(kube::Error::Api(refusal)) if refusal.reason == "AlreadyExists" => {
            Ok(match stored_pod(context, namespace, &name).await? {
                Some(pod) if owned::is_owned_by(&pod.metadata, &seen.uid) => made(&pod, inputs),
                Some(_) => Started::Waits(taken(&name), Some(UNTOLD)),
                None => Started::Later(MOMENT),
            })
        }
        Err(error) => refused(Error::api(format!("create Pod {namespace}/{name}"))(error)),
    }
}

fn made(pod: &Pod, inputs: &ValidAttempt) -> Started {
    // A pod that was found may have been made with another revision than a Job that starts now would get.
    let revision = build::revision_of(pod).unwrap_or_else(|| inputs.revision.clone());
    match pod.uid() {
        None => Started::Later(MOMENT),
        Some(uid) => Started::Made(StartedPod {
            pod: pod.name_any(),
            uid,
            attempt: inputs.attempt,
            revision,
            continued: inputs.continues.as_ref().map(|continued| continued.run_key.clone()),
            created: pod.metadata.creation_timestamp.clone(),
        }),
    }
}

fn untrusted(context: &Context) -> Wait {
    let message = format!(
        "the operator has no usable CA for its report endpoint, so no worker could report: the Job starts by itself \
         once it has. If this lasts, whoever runs the operator finds the cause in its log; a Secret {}/{} without \
         data is filled anew",
        context.settings.pod_namespace, context.settings.report.ca_secret
    );
    Wait::new(Reason::ReportUnavailable, message)
}

fn taken(name: &str) -> Wait {
    let message = format!(
        "there is a pod {name} that belongs to somebody else: delete or rename it, and the Job goes on by itself"
    );
    Wait::new(Reason::NameTaken, message)
}

/// Separates what a person has to change, a quota or an admission rule, from what may pass by itself.
fn refused(error: Error) -> Result<Started, Error> {
    match &error {
        Error::Api { source: kube::Error::Api(status), .. }
            if matches!(status.code, 400 | 403 | 422) && !error.is_gone() =>
        {
            let message = format!("the API server refuses the pod: {}", status.message);
            Ok(Started::Waits(Wait::new(Reason::PodNotStarting, message), Some(UNTOLD)))
        }
        _ => Err(error),
    }
}
