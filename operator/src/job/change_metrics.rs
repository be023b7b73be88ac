//! Records in the metrics what a written status adds to the status before it.

use crate::metrics::{Metrics, Tenant};
use bloomery_crds::v1alpha1::{Job, JobStatus, Verdict};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::core::ResourceExt;

/// Records the verdicts, the model calls, the tokens, the first report and the end that the status `after` has and the
/// status `before` does not have.
pub(crate) fn record(metrics: &Metrics, job: &Job, before: &JobStatus, after: &JobStatus, now: Timestamp) {
    let tenant = Tenant { namespace: job.namespace().unwrap_or_default(), skill: job.spec.skill.clone() };
    count_verdicts(metrics, &tenant, before, after);
    count_usage(metrics, &tenant, before, after);
    let created = job.metadata.creation_timestamp.as_ref().map_or(now, |created| created.0);
    // A clock that was set back must not record negative times.
    let seconds_since_creation = now.duration_since(created).max(SignedDuration::ZERO).as_secs_f64();
    if before.usage.is_none() && after.usage.is_some() {
        metrics.observe_start_latency(seconds_since_creation);
    }
    if let (false, Some(outcome)) = (before.is_terminal(), &after.outcome) {
        let phase = outcome.phase().to_string();
        metrics.record_job_end(&tenant, &outcome.code.to_string(), &phase, seconds_since_creation);
    }
}

fn count_verdicts(metrics: &Metrics, tenant: &Tenant, before: &JobStatus, after: &JobStatus) {
    let gates = |status: &JobStatus| status.gates.clone().unwrap_or_default();
    let (before, after) = (gates(before), gates(after));
    let add = |gate: &str, verdict: &str, count: u64| {
        if count > 0 {
            metrics.count_verdicts(tenant, gate, verdict, count);
        }
    };
    add("preTool", &Verdict::Allow.to_string(), increase(before.pre_tool.allowed, after.pre_tool.allowed));
    add("preTool", &Verdict::Deny.to_string(), increase(before.pre_tool.denied, after.pre_tool.denied));
    add("preTool", &Verdict::Hold.to_string(), increase(before.pre_tool.held, after.pre_tool.held));
    if let (None, Some(intent)) = (&before.intent, &after.intent) {
        add("intent", if intent.out_of_domain { "OutOfDomain" } else { "Detected" }, 1);
    }
    for attempt in after.finalization.attempts.iter().skip(before.finalization.attempts.len()) {
        add("finalization", if attempt.passed { "Pass" } else { "Fail" }, 1);
    }
}

fn count_usage(metrics: &Metrics, tenant: &Tenant, before: &JobStatus, after: &JobStatus) {
    let usage = |status: &JobStatus| status.usage.clone().unwrap_or_default();
    let (before, after) = (usage(before), usage(after));
    let (calls_before, calls) = (&before.llm_calls, &after.llm_calls);
    let stages = [
        ("intent", calls_before.intent, calls.intent),
        ("selection", calls_before.selection, calls.selection),
        ("plan", calls_before.plan, calls.plan),
        ("finalization", calls_before.finalization, calls.finalization),
        ("polish", calls_before.polish, calls.polish),
    ];
    for (stage, before, after) in stages.into_iter().filter(|(_, before, after)| after > before) {
        metrics.count_model_calls(tenant, stage, increase(before, after));
    }
    let kinds = [
        ("input", before.input_tokens, after.input_tokens),
        ("cached", before.cached_input_tokens, after.cached_input_tokens),
        ("output", before.output_tokens, after.output_tokens),
    ];
    for (kind, before, after) in kinds.into_iter().filter(|(_, before, after)| after > before) {
        metrics.count_tokens(tenant, kind, after.saturating_sub(before));
    }
}

fn increase(before: u32, after: u32) -> u64 {
    u64::from(after.saturating_sub(before))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures::{at, job, report, stamp, status};
    use crate::report::merge::{Merged, merge};
    use bloomery_crds::outcome::{Outcome, OutcomeCode, Phase};

    #[test]
    fn each_increase_is_counted_once() {
        let metrics = Metrics::new();
        let mut first = report(1, 1, 3, Phase::Running);
        first.projection.usage.llm_calls.plan = 2;
        first.projection.usage.input_tokens = 900;
        let start = status(1, Phase::Starting);
        let Merged::Urgent(running) = merge(&start, &first, &stamp(9)) else { panic!() };
        record(&metrics, &job(), &start, &running, at(9));
        record(&metrics, &job(), &running, &running, at(10));
        let ended = JobStatus {
            phase: Some(Phase::Succeeded),
            outcome: Some(Outcome::new(OutcomeCode::Succeeded, "done")),
            ..(*running).clone()
        };
        record(&metrics, &job(), &running, &ended, at(20));
        record(&metrics, &job(), &ended, &ended, at(30));
        let text = metrics.to_text();
        for line in [
            r#"stage="plan"} 2"#,
            r#"kind="input"} 900"#,
            r#"code="Succeeded"} 1"#,
            r#"bloomery_job_duration_seconds_count{phase="Succeeded"} 1"#,
            "bloomery_job_start_seconds_count 1",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
