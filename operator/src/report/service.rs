//! Handles reports: authenticates, checks, merges, writes, acknowledges. Independent of HTTP.

use super::MAX_WRITE_TRIES;
use super::auth::{Admitted, Authenticator, Caller};
use super::directives::{StopDemands, directives};
use super::features;
use super::hold::{self, Held};
use super::judge::{Judgement, check_report, check_tenant, judge};
use super::memory;
use super::merge::{LogStatement, Merged, acknowledged_events, merge, people_phase};
use super::probe;
use super::refusal::Refusal;
use super::skills;
use crate::approval::create::{self, create};
use crate::children::state::states;
use crate::context::Context;
use crate::error::Error;
use crate::events::EventMessage;
use crate::job::fetch::stored_pod;
use crate::job::status::{approvals_not_created, is_same_wait, policy_missing};
use crate::job::write_pace::WritePace;
use crate::owned;
use crate::status::StatusStamp;
use bloomery_crds::children::SkillPage;
use bloomery_crds::conditions::Reason;
use bloomery_crds::probe::{ProbeReceipt, ProbeReport, TokenRequest};
use bloomery_crds::report::{Directives, Report, ServerToken};
use bloomery_crds::v1alpha1::{Attempt, Job, JobStatus, McpServer, Skill};
use bloomery_token::Subject;
use k8s_openapi::jiff::Timestamp;
use kube::Api;
use kube::core::ResourceExt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;
use tokio_util::sync::CancellationToken;

/// Handles reports.
pub struct Service {
    context: Arc<Context>,
    authenticator: Authenticator,
    /// The statements of deferred reports wait for the next write, so that a report that contradicts them is recognized.
    pace: WritePace<LogStatement>,
    /// Cancelled when the process stops, so that no report is held any longer.
    stopping: CancellationToken,
}

/// The result of one try to handle a report.
enum Handled {
    /// The report is handled.
    Done(Box<Directives>),
    /// The Job may be out of date: read it again.
    Retry,
}

impl Service {
    /// Creates a service.
    pub fn new(context: Arc<Context>, stopping: CancellationToken) -> Self {
        let authenticator = Authenticator::new(context.client.clone(), context.metrics.clone());
        Self { context, authenticator, pace: WritePace::default(), stopping }
    }

    /// Admits a request with this bearer token from the address `peer`. The API server is asked only if the token is not known.
    ///
    /// # Errors
    /// [`Refusal`] shows whether the worker should repeat the request.
    pub(super) async fn admit(&self, token: &str, peer: IpAddr) -> Result<Admitted, Refusal> {
        self.authenticator.admit(token, peer).await
    }

    /// Handles a report. Returns the directives for its worker, with the number of acknowledged events.
    ///
    /// # Errors
    /// [`Refusal`] shows whether the worker should repeat the report.
    pub async fn handle(&self, caller: &Caller, report: &Report) -> Result<Directives, Refusal> {
        check_report(report)?;
        // This check comes before any read: a worker must not make the operator read another tenant's objects.
        check_tenant(caller, report)?;
        if let Some(job) = self.cached_job(report) {
            match judge(Some(&job), caller, report) {
                Judgement::Accepted => {
                    if let Handled::Done(directives) = Box::pin(self.merge_and_write(&job, report)).await? {
                        return Ok(*directives);
                    }
                }
                // The number of attempts only grows.
                Judgement::Refused(refusal @ Refusal::Superseded(_)) => return Err(refusal),
                Judgement::OtherPod(_) | Judgement::Refused(_) => {}
            }
        }
        // The cached Job may be out of date, so the stored one decides.
        for _ in 0..MAX_WRITE_TRIES {
            let job = self.stored_job(report).await?;
            self.check_caller(job.as_ref(), caller, report).await?;
            // Never happens: `check_caller` has refused a report for a Job that does not exist.
            let Some(job) = job else { continue };
            if let Handled::Done(directives) = Box::pin(self.merge_and_write(&job, report)).await? {
                return Ok(*directives);
            }
        }
        Err(Refusal::Unavailable(
            "the status of the Job was changed by other writers at every try: report again".to_owned(),
        ))
    }

    /// Holds the response to a report open until a child or another directive needs the worker, for the time that the report allows.
    pub(super) async fn hold(&self, held: &Held, directives: Directives) -> Directives {
        hold::hold(&self.context, held, directives, &self.stopping).await
    }

    /// Returns a page of the Skills that the Job of a worker may invoke: those after the name `after`.
    ///
    /// # Errors
    /// [`Refusal`] shows whether the worker should repeat the request.
    pub(super) async fn skills(&self, caller: &Caller, after: &str) -> Result<SkillPage, Refusal> {
        skills::page(&self.context, caller, after).await
    }

    /// Handles the report of a probe.
    ///
    /// # Errors
    /// [`Refusal`] shows whether the probe should repeat the report.
    pub async fn handle_probe(&self, caller: &Caller, report: &ProbeReport) -> Result<ProbeReceipt, Refusal> {
        probe::check(report)?;
        probe::handle(&self.context, caller, report).await?;
        self.context.metrics.count_report("probe");
        Ok(ProbeReceipt {})
    }

    /// Returns the token for the MCP server that a probe verifies.
    ///
    /// # Errors
    /// [`Refusal`] shows whether the probe should repeat the request.
    pub async fn handle_token_request(&self, caller: &Caller, request: &TokenRequest) -> Result<ServerToken, Refusal> {
        probe::check_names(&request.skill, &request.pod)?;
        probe::issue_token(&self.context, caller, request).await
    }

    /// Counts a refused report.
    pub fn count_refusal(&self, refusal: &Refusal) {
        self.context.metrics.count_report(refusal.kind());
        tracing::debug!(%refusal, "a report was refused");
    }

    /// The cached Job, unless it is older than the last write of this process.
    fn cached_job(&self, report: &Report) -> Option<Job> {
        let cached = self.context.caches.jobs.get(&report.job.namespace, &report.job.name)?;
        let job = cached.0.as_ref().ok()?;
        (!self.context.statuses.is_stale(job)).then(|| job.clone())
    }

    async fn stored_job(&self, report: &Report) -> Result<Option<Job>, Refusal> {
        let api: Api<Job> = Api::namespaced(self.context.client.clone(), &report.job.namespace);
        let stored = api.get_opt(&report.job.name).await;
        stored.map_err(|error| Refusal::Unavailable(format!("the Job cannot be read now: {error}")))
    }

    /// Refuses a report unless the caller is the recorded pod, or has replaced it.
    async fn check_caller(&self, job: Option<&Job>, caller: &Caller, report: &Report) -> Result<(), Refusal> {
        match judge(job, caller, report) {
            Judgement::Accepted => Ok(()),
            Judgement::Refused(refusal) => Err(refusal),
            Judgement::OtherPod(recorded) => self.check_successor(&recorded, caller, report).await,
        }
    }

    /// Accepts a caller that has replaced the recorded pod: a pod with the same name that the operator created for the Job.
    async fn check_successor(&self, recorded: &Attempt, caller: &Caller, report: &Report) -> Result<(), Refusal> {
        let stored = stored_pod(&self.context, &report.job.namespace, &recorded.pod).await;
        let pod = stored.map_err(|error| Refusal::Unavailable(error.to_string()))?;
        let is_successor = pod.is_some_and(|pod| {
            pod.metadata.uid.as_ref() == Some(&caller.pod_uid)
                && owned::is_worker_pod(&pod, (&report.job.name, &report.job.uid))
                && self.context.pod_seals.verify(&pod)
        });
        if is_successor {
            return Ok(());
        }
        Err(Refusal::Forbidden(format!("attempt {} runs in another pod, {}", recorded.number, recorded.pod)))
    }

    /// Merges a report of an accepted caller into the status of its Job, and writes the status if the change should be
    /// visible now. Creates the Approvals of a held call first.
    async fn merge_and_write(&self, job: &Job, report: &Report) -> Result<Handled, Refusal> {
        memory::record(&self.context, job, report).await;
        let current = job.status.clone().unwrap_or_default();
        let stamp = stamp(job);
        let uid = &report.job.uid;
        let contradiction = self.pace.deferred(uid).and_then(|earlier| earlier.contradiction(report));
        let merged = contradiction.map_or_else(|| merge(&current, report, &stamp), Merged::Conflict);
        let status = match merged {
            Merged::Urgent(status) => status,
            Merged::Deferrable(status) if self.pace.remaining(uid, Instant::now()).is_none() => status,
            Merged::Deferrable(_) => {
                self.pace.defer(uid, LogStatement::of_report(report));
                return Ok(self.respond("deferred", job, report, acknowledged_events(&current, report)).await);
            }
            Merged::Conflict(why) => {
                let warning = EventMessage::warning(Reason::ReportConflict, why.clone());
                self.context.events.publish(job, warning).await;
                return Err(Refusal::Conflict(why));
            }
            Merged::Unchanged => {
                return Ok(self.respond("repeated", job, report, acknowledged_events(&current, report)).await);
            }
        };
        let status = match self.create_approvals(job, report).await {
            Ok(()) => status,
            Err(create::Error::PolicyMissing(why)) => {
                tracing::warn!(
                    namespace = job.namespace(),
                    job = job.name_any(),
                    "approvers are not asked, because the admission policy is missing: {why}"
                );
                Box::new(policy_missing(&status, why, &stamp))
            }
            Err(create::Error::Invalid(error)) => return Err(Refusal::Invalid(error.to_string())),
            Err(why) => return self.handle_approvals_not_created(job, report, &why).await,
        };
        if status.is_terminal() {
            features::record(&self.context, job, report).await?;
        }
        let acknowledged = acknowledged_events(&status, report);
        let written = match self.context.statuses.replace(job, (*status).clone()).await {
            Ok(written) => written,
            Err(error) if error.is_conflict() => return Ok(Handled::Retry),
            Err(error) => return Err(refusal_from_write_error(&error)),
        };
        self.pace.record_write(uid, Instant::now());
        self.publish_events(job, &current, &status).await;
        Ok(self.respond("merged", written.as_ref().unwrap_or(job), report, acknowledged).await)
    }

    /// Creates the Approvals of the held call, before the status says that the Job waits for them.
    async fn create_approvals(&self, job: &Job, report: &Report) -> Result<(), create::Error> {
        let call = report.projection.waiting_for.as_ref().and_then(|waiting| waiting.call.as_ref());
        let (Some(call), Some(hold), Some(_)) = (call, &report.hold, people_phase(report)) else { return Ok(()) };
        create(&self.context, job, call, hold).await
    }

    /// Handles a report whose Approvals cannot be created. The report is not merged, so its worker sends it again. It
    /// still gets its directives, because a person may have cancelled the Job.
    async fn handle_approvals_not_created(
        &self,
        job: &Job,
        report: &Report,
        why: &create::Error,
    ) -> Result<Handled, Refusal> {
        let current = job.status.clone().unwrap_or_default();
        tracing::warn!(
            namespace = job.namespace(),
            job = job.name_any(),
            "the Approvals of a call cannot be created: {why}"
        );
        let next = approvals_not_created(&current, &why.to_string(), &stamp(job));
        if next != current && !is_same_wait(&current, &next) {
            match self.context.statuses.replace(job, next).await {
                Ok(_) => {}
                Err(error) if error.is_conflict() => return Ok(Handled::Retry),
                Err(error) => return Err(refusal_from_write_error(&error)),
            }
        }
        Ok(self.respond("unasked", job, report, acknowledged_events(&current, report)).await)
    }

    /// Counts a report under this result, and returns the directives for its worker. Frequent reports are cheap: only the result of an ended
    /// child that the worker asks about is read from the API server.
    async fn respond(&self, result: &str, job: &Job, report: &Report, ack: u64) -> Handled {
        self.context.metrics.count_report(result);
        let stop = StopDemands::read(&self.context.caches, job);
        let prune = memory::unneeded_logs(&self.context.caches, job, report);
        let skill = self.context.caches.skills.get(&report.job.namespace, &job.spec.skill);
        let skill = skill.as_ref().and_then(|skill| skill.0.as_ref().ok());
        let server_token = skill.filter(|_| report.end.is_none()).and_then(|skill| self.server_token(job, skill));
        let tenant_tools = self.context.tenant_limits(&report.job.namespace).tools();
        let computed = directives(job, skill, stop, report, ack);
        let calls: Vec<&str> = report.children.iter().map(|child| child.call.as_str()).collect();
        let children = states(&self.context, job, &calls).await;
        Handled::Done(Box::new(Directives { prune, server_token, tenant_tools, children, ..computed }))
    }

    /// Returns the token of a Job for the MCP server of its Skill, if the operator runs the server. A Job on an earlier revision also
    /// gets one: the server of that revision stays until the Job ends.
    fn server_token(&self, job: &Job, skill: &Skill) -> Option<ServerToken> {
        let takes_token = skill.spec.mcp_server.as_ref().is_some_and(McpServer::takes_token);
        let current = skill.status.as_ref().and_then(|status| status.revision.as_ref());
        let is_current = current == job.status.as_ref().and_then(|status| status.skill_revision.as_ref());
        if is_current && !takes_token {
            return None;
        }
        let (namespace, name, uid) = (job.namespace()?, job.name_any(), job.uid()?);
        let subject = Subject { namespace: &namespace, skill: &job.spec.skill, job: Some(&name), uid: &uid };
        self.context.server_tokens.issue(subject, Timestamp::now())
    }

    async fn publish_events(&self, job: &Job, current: &JobStatus, merged: &JobStatus) {
        crate::job::publish_changed_tools(&self.context, job, current, merged).await;
        crate::job::change_metrics::record(&self.context.metrics, job, current, merged, Timestamp::now());
        if let Some(outcome) = merged.outcome.as_ref().filter(|_| !current.is_terminal()) {
            crate::job::publish_end(&self.context, job, outcome).await;
        } else if merged.awaits_people() && current.phase != merged.phase {
            crate::job::publish_waiting(&self.context, job, merged).await;
        } else {
            crate::job::publish_new_wait(&self.context, job, current, merged).await;
        }
    }
}

fn stamp(job: &Job) -> StatusStamp {
    StatusStamp::new(job, Timestamp::now())
}

fn refusal_from_write_error(error: &Error) -> Refusal {
    match error.code() {
        Some(400 | 422) => Refusal::Invalid(format!("the API server refuses the status: {error}")),
        Some(404) => Refusal::NotFound(format!("the Job is gone: {error}")),
        _ => Refusal::Unavailable(format!("the status cannot be written now: {error}")),
    }
}
