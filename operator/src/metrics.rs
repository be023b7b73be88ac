//! Metrics for Prometheus.

use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

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
    verdicts: Family<Labels<2>, Counter>,
}

impl Metrics {
    /// Registers all series.
    pub fn new() -> Self {
        let reconcile_histogram: fn() -> Histogram = || Histogram::new([0.005, 0.02, 0.1, 0.5, 2.0, 10.0]);
        // In seconds, from a minute to a week: these are waits for people.
        let wait_histogram: fn() -> Histogram =
            || Histogram::new([60.0, 600.0, 3600.0, 4.0 * 3600.0, 24.0 * 3600.0, 7.0 * 24.0 * 3600.0]);
        let mut metrics = Self {
            registry: Registry::with_prefix("bloomery"),
            reconciles: Family::default(),
            reconcile_durations: Family::new_with_constructor(reconcile_histogram),
            reconciles_running: Family::default(),
            writes: Family::default(),
            leader: Gauge::default(),
            jobs: Family::default(),
            longest_waits: Family::default(),
            waits: Family::new_with_constructor(wait_histogram),
            reports: Family::default(),
            verdicts: Family::default(),
        };
        let registry = &mut metrics.registry;
        registry.register("reconciles", "Reconciles by controller and result", metrics.reconciles.clone());
        registry.register(
            "reconcile_seconds",
            "Duration of a reconcile in seconds",
            metrics.reconcile_durations.clone(),
        );
        registry.register("reconciles_running", "Reconciles in progress", metrics.reconciles_running.clone());
        registry.register("writes", "Requests that change the cluster, by kind and verb", metrics.writes.clone());
        registry.register("leader", "1 if this replica leads, otherwise 0", metrics.leader.clone());
        registry.register("jobs", "Jobs by phase", metrics.jobs.clone());
        let help = "Longest current wait of a Job for people in seconds, by phase";
        registry.register("waiting_longest_seconds", help, metrics.longest_waits.clone());
        registry.register(
            "waited_seconds",
            "Duration of finished waits for people in seconds, by phase",
            metrics.waits.clone(),
        );
        registry.register("reports", "Reports of workers by result", metrics.reports.clone());
        registry.register("gate_verdicts", "Verdicts by gate and verdict", metrics.verdicts.clone());
        metrics
    }

    /// Records the start of a reconcile.
    pub fn record_reconcile_start(&self, controller: &str) {
        self.reconciles_running.get_or_create(&[("controller", controller.to_owned())]).inc();
    }

    /// Records the end of a reconcile after this number of seconds. `result` is `ok` or the kind of the error.
    pub fn record_reconcile_end(&self, controller: &str, result: &str, seconds: f64) {
        let controller = controller.to_owned();
        self.reconciles_running.get_or_create(&[("controller", controller.clone())]).dec();
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

    /// Sets the number of Jobs in each phase. A phase that is not listed has none.
    pub fn set_jobs_by_phase(&self, counts: impl IntoIterator<Item = (String, usize)>) {
        self.jobs.clear();
        for (phase, count) in counts {
            self.jobs.get_or_create(&[("phase", phase)]).set(i64::try_from(count).unwrap_or(i64::MAX));
        }
    }

    /// Sets, for each phase, the seconds that the longest-waiting Job has waited. In a phase that is not listed, no Job
    /// waits.
    pub fn set_longest_waits(&self, seconds: impl IntoIterator<Item = (String, i64)>) {
        self.longest_waits.clear();
        for (phase, seconds) in seconds {
            self.longest_waits.get_or_create(&[("phase", phase)]).set(seconds);
        }
    }

    /// Records how many seconds a Job has waited for people in a phase.
    pub fn observe_wait(&self, phase: &str, seconds: f64) {
        self.waits.get_or_create(&[("phase", phase.to_owned())]).observe(seconds);
    }

    /// Counts a report by its result: `merged`, `deferred`, `repeated` or `unasked`, or the kind of its refusal.
    pub fn count_report(&self, result: &str) {
        self.reports.get_or_create(&[("result", result.to_owned())]).inc();
    }

    /// Counts verdicts of a gate.
    pub fn count_verdicts(&self, gate: &str, verdict: &str, count: u64) {
        let labels = [("gate", gate.to_owned()), ("verdict", verdict.to_owned())];
        self.verdicts.get_or_create(&labels).inc_by(count);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_have_their_labels_and_values() {
        let metrics = Metrics::new();
        metrics.record_reconcile_start("skill");
        metrics.record_reconcile_end("skill", "conflict", 0.3);
        metrics.count_verdicts("preTool", "Deny", 2);
        metrics.set_jobs_by_phase([("Running".to_owned(), 3)]);
        metrics.set_longest_waits([("AwaitingReply".to_owned(), 90)]);
        metrics.observe_wait("AwaitingReply", 90.0);
        let text = metrics.to_text();
        for line in [
            r#"bloomery_reconciles_total{controller="skill",result="conflict"} 1"#,
            r#"bloomery_gate_verdicts_total{gate="preTool",verdict="Deny"} 2"#,
            r#"bloomery_jobs{phase="Running"} 3"#,
            r#"bloomery_waiting_longest_seconds{phase="AwaitingReply"} 90"#,
            r#"bloomery_waited_seconds_bucket{le="600.0",phase="AwaitingReply"} 1"#,
            r#"bloomery_reconciles_running{controller="skill"} 0"#,
        ] {
            assert!(text.contains(line), "{line} is not in\n{text}");
        }
    }
}
