//! The state of a Job, for tests.

use bloomery_crds::Digest;
use bloomery_crds::outcome::{Outcome, Phase};
use bloomery_crds::report::Projection;
use bloomery_crds::v1alpha1::{Gates, JobResult, LogPosition, Usage};
use bloomery_embed::JobStatus;

/// Returns the state of a Job with two events. Without an outcome, it runs.
pub(crate) fn job_status(job: &str, outcome: Option<Outcome>, result: Option<JobResult>) -> JobStatus {
    let status = Projection {
        phase: outcome.as_ref().map_or(Phase::Running, Outcome::phase),
        outcome,
        result,
        gates: Gates::default(),
        features: Vec::new(),
        workflows: Vec::new(),
        tool_names: Vec::new(),
        waiting_for: None,
        replies_heard: 0,
        stray_replies: Vec::new(),
        remarks: Vec::new(),
        tools_changed: false,
        usage: Usage::default(),
        log: LogPosition { path: "jobs/k".into(), events: 2, head: Digest::of_bytes(b"") },
    };
    JobStatus { job: job.to_owned(), skill: "greeter".into(), goal: "Greet".into(), status, condition: None }
}
