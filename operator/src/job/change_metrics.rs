//! Records in the metrics what a written status adds to the status before it.

use crate::metrics::{Metrics, SkillKey};
use bloomery_crds::v1alpha1::{Job, JobStatus, ModelUsage, Stage, Tokens, Usage, Verdict};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::core::ResourceExt;
use strum::IntoEnumIterator;

/// Records the verdicts, the model calls, the tokens, the first report and the end that the status `after` has and the
/// status `before` does not have.
pub(crate) fn record(metrics: &Metrics, job: &Job, before: &JobStatus, after: &JobStatus, now: Timestamp) {
    let skill_key = SkillKey { namespace: job.namespace().unwrap_or_default(), skill: job.spec.skill.clone() };
    count_verdicts(metrics, &skill_key, before, after);
    count_usage(metrics, &skill_key, before, after);
    let created = job.metadata.creation_timestamp.as_ref().map_or(now, |created| created.0);
    // A clock that was set back must not record negative times.
    let seconds_since_creation = now.duration_since(created).max(SignedDuration::ZERO).as_secs_f64();
    if before.usage.is_none() && after.usage.is_some() {
        metrics.observe_start_latency(seconds_since_creation);
    }
    if let (false, Some(outcome)) = (before.is_terminal(), &after.outcome) {
        let phase = outcome.phase().to_string();
        metrics.record_job_end(&skill_key, &outcome.code.to_string(), &phase, seconds_since_creation);
    }
}

fn count_verdicts(metrics: &Metrics, skill_key: &SkillKey, before: &JobStatus, after: &JobStatus) {
    let gates = |status: &JobStatus| status.gates.clone().unwrap_or_default();
    let (before, after) = (gates(before), gates(after));
    let add = |gate: &str, verdict: &str, count: u64| {
        if count > 0 {
            metrics.count_verdicts(skill_key, gate, verdict, count);
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

/// Counts the calls and tokens of each Model. A worker of an older version reports only the sums: they count for a Model without a
/// name, and so does the report in which a newer worker continues such a Job.
fn count_usage(metrics: &Metrics, skill_key: &SkillKey, before: &JobStatus, after: &JobStatus) {
    let usage = |status: &JobStatus| status.usage.clone().unwrap_or_default();
    let (before, after) = (usage(before), usage(after));
    let (sums_before, sums_after) = (sums(&before), sums(&after));
    let continues_older = before.by_model.is_empty() && sums_before != ModelUsage::default();
    if after.by_model.is_empty() || continues_older {
        count_model(metrics, skill_key, &sums_before, &sums_after);
        return;
    }
    for model in &after.by_model {
        let earlier = before.by_model.iter().find(|earlier| earlier.model == model.model);
        count_model(metrics, skill_key, &earlier.cloned().unwrap_or_default(), model);
    }
}

/// Returns the sums over all Models, as the usage of a Model without a name.
fn sums(usage: &Usage) -> ModelUsage {
    let Usage { llm_calls, input_tokens, cached_input_tokens, output_tokens, .. } = usage.clone();
    ModelUsage { llm_calls, input_tokens, cached_input_tokens, output_tokens, ..ModelUsage::default() }
}

/// Counts the calls and tokens of a Model. Tokens that a worker of an older version reports count for a stage without a name.
fn count_model(metrics: &Metrics, skill_key: &SkillKey, before: &ModelUsage, after: &ModelUsage) {
    let model = &after.model;
    let (mut rest_before, mut rest_after) = (before.tokens(), after.tokens());
    for stage in Stage::iter() {
        let name = stage.to_string().to_ascii_lowercase();
        let calls = increase(before.llm_calls.in_stage(stage), after.llm_calls.in_stage(stage));
        if calls > 0 {
            metrics.count_model_calls(skill_key, model, &name, calls);
        }
        let tokens = |usage: &ModelUsage| usage.tokens_by_stage.in_stage(stage);
        let (before, after) = (tokens(before), tokens(after));
        count_tokens(metrics, skill_key, (model, &name), &before, &after);
        (rest_before, rest_after) = (rest_before.less(before), rest_after.less(after));
    }
    count_tokens(metrics, skill_key, (model, ""), &rest_before, &rest_after);
}

fn count_tokens(
    metrics: &Metrics,
    skill_key: &SkillKey,
    (model, stage): (&str, &str),
    before: &Tokens,
    after: &Tokens,
) {
    let kinds = [
        ("input", before.input, after.input),
        ("cached", before.cached_input, after.cached_input),
        ("output", before.output, after.output),
    ];
    for (kind, before, after) in kinds.into_iter().filter(|(_, before, after)| after > before) {
        metrics.count_tokens(skill_key, (model, stage), kind, after.saturating_sub(before));
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
    use bloomery_crds::v1alpha1::LlmCalls;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    #[test]
    fn each_increase_is_counted_once() {
        let metrics = Metrics::new();
        let mut job = job();
        job.metadata.creation_timestamp = Some(Time(at(2)));
        let mut first = report(1, 1, 3, Phase::Running);
        first.projection.usage.llm_calls.plan = 2;
        first.projection.usage.input_tokens = 900;
        let start = status(1, Phase::Starting);
        let Merged::Urgent(running) = merge(&start, &first, &stamp(9)) else { panic!() };
        record(&metrics, &job, &start, &running, at(9));
        record(&metrics, &job, &running, &running, at(10));
        let ended = JobStatus {
            phase: Some(Phase::Succeeded),
            outcome: Some(Outcome::new(OutcomeCode::Succeeded, "done")),
            ..(*running).clone()
        };
        record(&metrics, &job, &running, &ended, at(20));
        record(&metrics, &job, &ended, &ended, at(30));
        let text = metrics.to_text();
        for line in [
            r#"stage="plan",model=""} 2"#,
            r#"kind="input",stage="",model=""} 900"#,
            r#"code="Succeeded"} 1"#,
            r#"bloomery_job_duration_seconds_count{phase="Succeeded"} 1"#,
            r#"bloomery_job_duration_seconds_sum{phase="Succeeded"} 18.0"#,
            "bloomery_job_start_seconds_count 1",
            "bloomery_job_start_seconds_sum 7.0",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    fn used(calls: u32, input: u64, by_model: &[(&str, u32, u64)]) -> JobStatus {
        let llm_calls = |plan| LlmCalls { plan, ..LlmCalls::default() };
        let model = |(model, calls, tokens): &(&str, u32, u64)| ModelUsage {
            model: (*model).into(),
            llm_calls: llm_calls(*calls),
            input_tokens: *tokens,
            ..ModelUsage::default()
        };
        let by_model = by_model.iter().map(model).collect();
        let usage = Usage { llm_calls: llm_calls(calls), input_tokens: input, by_model, ..Usage::default() };
        JobStatus { usage: Some(usage.into()), ..JobStatus::default() }
    }

    fn counted(statuses: &[JobStatus]) -> Vec<String> {
        let metrics = Metrics::new();
        let before = [JobStatus::default()];
        for (before, after) in before.iter().chain(statuses).zip(statuses) {
            record(&metrics, &job(), before, after, at(9));
        }
        let text = metrics.to_text();
        let of_usage = text.lines().filter_map(|line| line.split_once("model="));
        let mut counted: Vec<String> = of_usage.map(|(_, model)| model.to_owned()).collect();
        counted.sort();
        counted
    }

    #[test]
    fn calls_and_tokens_are_counted_by_model() {
        let before_the_first_call =
            JobStatus { usage: Some(Usage { seconds: 1, ..Usage::default() }.into()), ..JobStatus::default() };
        let statuses = [
            before_the_first_call,
            used(1, 0, &[("large", 0, 0)]),
            used(2, 90, &[("large", 1, 90)]),
            used(3, 160, &[("fast", 1, 50), ("large", 2, 110)]),
        ];
        assert_eq!(counted(&statuses), ["\"fast\"} 1", "\"fast\"} 50", "\"large\"} 110", "\"large\"} 2"]);
    }

    #[test]
    fn tokens_are_counted_by_stage() {
        let metrics = Metrics::new();
        let mut usage = Usage { by_model: vec![ModelUsage::default()], ..Usage::default() };
        let mut before = JobStatus::default();
        for (stage, input) in [(Stage::Plan, 90), (Stage::Polish, 20), (Stage::Plan, 10)] {
            usage.by_model[0].add_call(stage, Tokens { input, ..Tokens::default() });
            let after = JobStatus { usage: Some(usage.clone().into()), ..JobStatus::default() };
            record(&metrics, &job(), &before, &after, at(9));
            before = after;
        }
        let text = metrics.to_text();
        let mut tokens: Vec<&str> =
            text.lines().filter_map(|line| line.split_once(r#"kind="input","#)).map(|(_, labels)| labels).collect();
        // The order of series is random.
        tokens.sort_unstable();
        assert_eq!(tokens, [r#"stage="plan",model=""} 100"#, r#"stage="polish",model=""} 20"#], "{text}");
    }

    #[test]
    fn what_an_older_worker_reports_counts_for_no_model() {
        let statuses = [used(2, 90, &[]), used(3, 130, &[("large", 3, 130)]), used(4, 150, &[("large", 4, 150)])];
        assert_eq!(counted(&statuses), ["\"\"} 130", "\"\"} 3", "\"large\"} 1", "\"large\"} 20"]);
    }
}
