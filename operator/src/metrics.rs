//! Metrics for Prometheus.

mod known_skills;
mod process;

use axum::http::StatusCode;
use bloomery_crds::outcome::Phase;
use known_skills::KnownSkills;
pub use known_skills::SkillKey;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Metric, Registry};
use std::collections::BTreeMap;
use strum::IntoEnumIterator;

/// The labels of a series, in order.
type Labels<const N: usize> = [(&'static str, String); N];

/// All series of the operator.
pub struct Metrics {
    registry: Registry,
    reconciles: Family<Labels<2>, Counter>,
    reconcile_durations: Family<Labels<1>, Histogram>,
    reconciles_running: Family<Labels<1>, Gauge>,
    writes: Family<Labels<2>, Counter>,
    leader: Gauge,
    jobs: Family<Labels<1>, Gauge>,
    longest_waits: Family<Labels<1>, Gauge>,
    waits: Family<Labels<1>, Histogram>,
    reports: Family<Labels<1>, Counter>,
    verdicts: Family<Labels<4>, Counter>,
    feature_tests: Family<Labels<3>, Counter>,
    waiting_jobs: Family<Labels<1>, Gauge>,
    queued_jobs: Family<Labels<3>, Gauge>,
    queue_positions: Family<Labels<2>, Gauge>,
    outcomes: Family<Labels<3>, Counter>,
    job_durations: Family<Labels<1>, Histogram>,
    start_latencies: Histogram,
    model_calls: Family<Labels<4>, Counter>,
    tokens: Family<Labels<5>, Counter>,
    skills: Family<Labels<1>, Gauge>,
    models: Family<Labels<1>, Gauge>,
    api_responses: Family<Labels<1>, Counter>,
    build_info: Family<Labels<1>, Gauge>,
    known_skills: KnownSkills,
}

/// Registers series whose names begin with `bloomery_`.
struct Series<'a>(&'a mut Registry);

impl Series<'_> {
    fn add<M: Metric + Clone + Default>(&mut self, name: &str, help: &str) -> M {
        self.add_metric(name, help, M::default())
    }

    fn add_metric<M: Metric + Clone>(&mut self, name: &str, help: &str, metric: M) -> M {
        self.0.register(name, help, metric.clone());
        metric
    }

    fn add_histograms(&mut self, name: &str, help: &str, new: fn() -> Histogram) -> Family<Labels<1>, Histogram> {
        self.add_metric(name, help, Family::new_with_constructor(new))
    }
}

/// The upper bounds of the histogram buckets for waits for people, in seconds: from a minute to a week.
const WAIT_BUCKETS: [f64; 6] = [60.0, 600.0, 3600.0, 4.0 * 3600.0, 24.0 * 3600.0, 7.0 * 24.0 * 3600.0];

/// The upper bounds of the histogram buckets for the durations of Jobs, in seconds: from a second to a week, because a Job may wait for
/// people.
const DURATION_BUCKETS: [f64; 9] =
    [1.0, 5.0, 20.0, 60.0, 300.0, 1800.0, 4.0 * 3600.0, 24.0 * 3600.0, 7.0 * 24.0 * 3600.0];

impl Metrics {
    /// Registers all series.
    pub fn new() -> Self {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(process::Process));
        let mut series = Series(registry.sub_registry_with_prefix("bloomery"));
        let start_latencies = Histogram::new([0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 120.0, 600.0]);
        let metrics = Self {
            reconciles: series.add("reconciles", "Reconciles by controller and result"),
            reconcile_durations: series.add_histograms(
                "reconcile_seconds",
                "Duration of a reconcile in seconds",
                || Histogram::new([0.005, 0.02, 0.1, 0.5, 2.0, 10.0]),
            ),
            reconciles_running: series.add("reconciles_running", "Reconciles in progress"),
            writes: series.add("writes", "Requests that change the cluster, by kind and verb"),
            leader: series.add("leader", "1 if this replica leads, otherwise 0"),
            jobs: series.add("jobs", "Jobs by phase"),
            longest_waits: series.add("waiting_longest_seconds", "Longest open wait for people in seconds, by phase"),
            waits: series.add_histograms(
                "waited_seconds",
                "Duration of finished waits for people in seconds, by phase",
                || Histogram::new(WAIT_BUCKETS),
            ),
            reports: series.add("reports", "Reports of workers by result"),
            verdicts: series.add("gate_verdicts", "Verdicts by namespace, Skill, gate and verdict"),
            feature_tests: series.add("feature_tests", "Tests of features by namespace, Skill and result"),
            waiting_jobs: series.add(
                "jobs_waiting",
                "Jobs that have not ended and have no running worker, by the reason of their condition Ready",
            ),
            queued_jobs: series
                .add("jobs_queued", "Queued Jobs by namespace, Skill and limit: skill, namespace, cluster or quota"),
            queue_positions: series.add(
                "queue_position",
                "Position of the first queued Job of a Skill among the first ones of all Skills, from 1, by namespace and Skill",
            ),
            outcomes: series.add("job_outcomes", "Ended Jobs by namespace, Skill and outcome code"),
            job_durations: series.add_histograms(
                "job_duration_seconds",
                "Time from the creation of a Job to its end in seconds, by phase",
                || Histogram::new(DURATION_BUCKETS),
            ),
            start_latencies: series.add_metric(
                "job_start_seconds",
                "Time from the creation of a Job to the first report of its worker in seconds",
                start_latencies,
            ),
            model_calls: series.add("model_calls", "Model calls by namespace, Skill, stage and Model"),
            tokens: series.add(
                "tokens",
                "Tokens by namespace, Skill, kind (input, cached or output; cached ones are also input), stage and Model",
            ),
            skills: series.add("skills", "Skills by the status of their condition Ready"),
            models: series.add("models", "Models by the status of their condition Ready"),
            api_responses: series
                .add("api_responses", "Responses of the API server by HTTP status, or `error` if there was none"),
            build_info: series.add("build_info", "1, with the version of the operator"),
            known_skills: KnownSkills::default(),
            registry,
        };
        metrics.build_info.get_or_create(&[("version", env!("CARGO_PKG_VERSION").to_owned())]).set(1);
        metrics
    }

    /// Records the start of a reconcile. The reconcile counts as running until the returned guard is dropped.
    #[must_use = "the reconcile counts as running until this guard is dropped"]
    pub fn record_reconcile_start(&self, controller: &str) -> RunningReconcile {
        let running = self.reconciles_running.get_or_create_owned(&[("controller", controller.to_owned())]);
        running.inc();
        RunningReconcile(running)
    }

    /// Records the result of a reconcile after this number of seconds. `result` is `ok` or the kind of the error.
    pub fn record_reconcile_end(&self, controller: &str, result: &str, seconds: f64) {
        let controller = controller.to_owned();
        self.reconcile_durations.get_or_create(&[("controller", controller.clone())]).observe(seconds);
        self.reconciles.get_or_create(&[("controller", controller), ("result", result.to_owned())]).inc();
    }

    /// Counts a request that changes the cluster.
    pub fn count_write(&self, kind: &str, verb: &str) {
        self.writes.get_or_create(&[("kind", kind.to_owned()), ("verb", verb.to_owned())]).inc();
    }

    /// Sets whether this replica leads.
    pub fn set_leader(&self, leads: bool) {
        self.leader.set(i64::from(leads));
    }

    /// Sets the gauges that only the leader computes. Phases without Jobs are shown as zero.
    pub fn set_counts(&self, counts: &Counts) {
        self.clear_counts();
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        for phase in Phase::iter() {
            let count = counts.jobs.get(&phase.to_string()).copied().unwrap_or_default();
            self.jobs.get_or_create(&[("phase", phase.to_string())]).set(number(count));
        }
        for (reason, count) in &counts.waiting_jobs {
            self.waiting_jobs.get_or_create(&[("reason", reason.clone())]).set(number(*count));
        }
        self.set_queue(&counts.queued_jobs);
        for (phase, seconds) in &counts.longest_waits {
            self.longest_waits.get_or_create(&[("phase", phase.clone())]).set(*seconds);
        }
        for status in ["True", "False", "Unknown"] {
            let count = |counts: &BTreeMap<String, usize>| number(counts.get(status).copied().unwrap_or_default());
            self.skills.get_or_create(&[("ready", status.to_owned())]).set(count(&counts.skills));
            self.models.get_or_create(&[("ready", status.to_owned())]).set(count(&counts.models));
        }
    }

    /// Sets the gauges of the queue. The Skills are in the order in which they get free places.
    pub fn set_queue(&self, queue: &[QueuedJobs]) {
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        for queued in queue {
            let position = self.queue_positions.get_or_create_owned(&self.known_skills.labels(&queued.skill_key));
            // Of several Skills that share labels, the first one counts.
            if position.get() == 0 {
                position.set(number(queued.position));
            }
            let [namespace, skill] = self.known_skills.labels(&queued.skill_key);
            let labels = [namespace, skill, ("waits_for", queued.waits_for.clone())];
            self.queued_jobs.get_or_create(&labels).inc_by(number(queued.count));
        }
    }

    /// Removes the gauges that only the leader computes, when this replica stops leading.
    pub fn clear_counts(&self) {
        for family in [&self.jobs, &self.waiting_jobs, &self.longest_waits, &self.skills, &self.models] {
            family.clear();
        }
        self.queued_jobs.clear();
        self.queue_positions.clear();
    }

    /// Records how many seconds a Job has waited for people in a phase.
    pub fn observe_wait(&self, phase: &str, seconds: f64) {
        self.waits.get_or_create(&[("phase", phase.to_owned())]).observe(seconds);
    }

    /// Counts a report by its result:
    ///
    /// - `merged`: the status was written.
    /// - `deferred`: the report changes only values that a later write can contain, and the last write was too recent.
    /// - `repeated`: the report changes nothing.
    /// - `unasked`: the Approvals of a held call cannot be created, so nobody is asked. The worker sends the report again.
    /// - Otherwise, the kind of the refusal.
    pub fn count_report(&self, result: &str) {
        self.reports.get_or_create(&[("result", result.to_owned())]).inc();
    }

    /// Counts verdicts of a gate for a Job of this Skill.
    pub fn count_verdicts(&self, skill_key: &SkillKey, gate: &str, verdict: &str, count: u64) {
        let [namespace, skill] = self.known_skills.labels(skill_key);
        let labels = [namespace, skill, ("gate", gate.to_owned()), ("verdict", verdict.to_owned())];
        self.verdicts.get_or_create(&labels).inc_by(count);
    }

    /// Counts the test of a feature of this Skill.
    pub fn count_feature_test(&self, skill_key: &SkillKey, result: &str) {
        let [namespace, skill] = self.known_skills.labels(skill_key);
        self.feature_tests.get_or_create(&[namespace, skill, ("result", result.to_owned())]).inc();
    }

    /// Counts calls of a Model in a stage, for a Job of this Skill. The name of the Model is empty if it is not known.
    pub fn count_model_calls(&self, skill_key: &SkillKey, model: &str, stage: &str, count: u64) {
        let [namespace, skill, model] = self.known_skills.labels_with_model(skill_key, model);
        self.model_calls.get_or_create(&[namespace, skill, ("stage", stage.to_owned()), model]).inc_by(count);
    }

    /// Counts tokens of a kind, of a Model in a stage, for a Job of this Skill. The names of the Model and the stage are empty if they are
    /// not known.
    pub fn count_tokens(&self, skill_key: &SkillKey, (model, stage): (&str, &str), kind: &str, count: u64) {
        let [namespace, skill, model] = self.known_skills.labels_with_model(skill_key, model);
        let labels = [namespace, skill, ("kind", kind.to_owned()), ("stage", stage.to_owned()), model];
        self.tokens.get_or_create(&labels).inc_by(count);
    }

    /// Counts the end of a Job of this Skill, and records the seconds since the creation of the Job.
    pub fn record_job_end(&self, skill_key: &SkillKey, code: &str, phase: &str, seconds: f64) {
        let [namespace, skill] = self.known_skills.labels(skill_key);
        self.outcomes.get_or_create(&[namespace, skill, ("code", code.to_owned())]).inc();
        self.job_durations.get_or_create(&[("phase", phase.to_owned())]).observe(seconds);
    }

    /// Records the seconds from the creation of a Job to the first report of its worker.
    pub fn observe_start_latency(&self, seconds: f64) {
        self.start_latencies.observe(seconds);
    }

    /// Counts a response of the API server, or a request without a response.
    pub fn count_api_response(&self, status: Option<StatusCode>) {
        let code = status.map_or_else(|| "error".to_owned(), |status| status.as_str().to_owned());
        self.api_responses.get_or_create(&[("code", code)]).inc();
    }

    /// All series in the `OpenMetrics` text format.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

/// A guard that counts a reconcile as running until it is dropped. An aborted reconcile drops it, too.
#[derive(Debug)]
pub struct RunningReconcile(Gauge);

impl Drop for RunningReconcile {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// The values of the gauges that only the leader computes.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// The number of Jobs by phase.
    pub jobs: BTreeMap<String, usize>,
    /// The number of Jobs without a running worker, by the reason of their condition `Ready`.
    pub waiting_jobs: BTreeMap<String, usize>,
    /// The queued Jobs of each Skill, in the order in which the Skills get free places.
    pub queued_jobs: Vec<QueuedJobs>,
    /// For each phase in which Jobs wait for people: the seconds that the longest-waiting Job has waited.
    pub longest_waits: BTreeMap<String, i64>,
    /// The number of Skills by the status of their condition `Ready`.
    pub skills: BTreeMap<String, usize>,
    /// The number of Models by the status of their condition `Ready`.
    pub models: BTreeMap<String, usize>,
}

/// The queued Jobs of a Skill.
#[derive(Debug, PartialEq, Eq)]
pub struct QueuedJobs {
    /// The Skill.
    pub skill_key: SkillKey,
    /// What they wait for.
    pub waits_for: String,
    /// Their number.
    pub count: usize,
    /// The position of the first of them among the first ones of all Skills, from 1.
    pub position: usize,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn skill_key() -> SkillKey {
        SkillKey { namespace: "acme".into(), skill: "refunds".into() }
    }

    #[test]
    fn series_have_their_labels_and_values() {
        let metrics = Metrics::new();
        drop(metrics.record_reconcile_start("skill"));
        metrics.record_reconcile_end("skill", "conflict", 0.3);
        metrics.count_verdicts(&skill_key(), "preTool", "Deny", 2);
        metrics.count_feature_test(&skill_key(), "failed");
        metrics.count_tokens(&skill_key(), ("large", "plan"), "input", 90);
        metrics.record_job_end(&skill_key(), "Done", "Succeeded", 3.0);
        metrics.set_counts(&Counts {
            jobs: BTreeMap::from([("Running".to_owned(), 3)]),
            longest_waits: BTreeMap::from([("AwaitingReply".to_owned(), 90)]),
            queued_jobs: vec![QueuedJobs { skill_key: skill_key(), waits_for: "skill".into(), count: 7, position: 2 }],
            ..Counts::default()
        });
        metrics.observe_wait("AwaitingReply", 90.0);
        let text = metrics.to_text();
        for line in [
            r#"bloomery_reconciles_total{controller="skill",result="conflict"} 1"#,
            r#"bloomery_gate_verdicts_total{namespace="acme",skill="refunds",gate="preTool",verdict="Deny"} 2"#,
            r#"bloomery_feature_tests_total{namespace="acme",skill="refunds",result="failed"} 1"#,
            r#"bloomery_tokens_total{namespace="acme",skill="refunds",kind="input",stage="plan",model="large"} 90"#,
            r#"bloomery_job_outcomes_total{namespace="acme",skill="refunds",code="Done"} 1"#,
            r#"bloomery_jobs{phase="Running"} 3"#,
            r#"bloomery_jobs{phase="Queued"} 0"#,
            r#"bloomery_jobs{phase="AwaitingJob"} 0"#,
            r#"bloomery_skills{ready="True"} 0"#,
            r#"bloomery_jobs_queued{namespace="acme",skill="refunds",waits_for="skill"} 7"#,
            r#"bloomery_queue_position{namespace="acme",skill="refunds"} 2"#,
            r#"bloomery_waiting_longest_seconds{phase="AwaitingReply"} 90"#,
            r#"bloomery_waited_seconds_bucket{le="600.0",phase="AwaitingReply"} 1"#,
            r#"bloomery_reconciles_running{controller="skill"} 0"#,
            "bloomery_build_info{version=",
            "process_resident_memory_bytes ",
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn a_former_leader_shows_no_counts_and_an_aborted_reconcile_does_not_run() {
        let metrics = Metrics::new();
        let running = metrics.record_reconcile_start("job");
        metrics.set_counts(&Counts::default());
        assert!(metrics.to_text().contains(r#"bloomery_jobs{phase="Running"} 0"#));
        metrics.clear_counts();
        assert!(!metrics.to_text().contains("bloomery_jobs{"));
        assert!(metrics.to_text().contains(r#"reconciles_running{controller="job"} 1"#));
        drop(running);
        assert!(metrics.to_text().contains(r#"reconciles_running{controller="job"} 0"#));
    }
}
