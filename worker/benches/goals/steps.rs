//! Measures a step: the real worker, and the floor with the same requests and segments, in turns.

use crate::figures::{Figures, count, us};
use crate::floor::{self, Action};
use crate::job::Job;
use crate::rows::rows;
use crate::servers::{Plan, Servers};
use crate::skill::WINDOW;
use crate::times::{ratio, typical};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The length of a tool's answer, in bytes.
const RESULT_BYTES: usize = 400;

/// The number of steps whose mean is reported for the step in their middle.
const AROUND: usize = 10;

/// The times of each step, in the runs of the worker and of the floor.
struct Runs {
    worker: Vec<Vec<Duration>>,
    floor: Vec<Vec<Duration>>,
    /// The number of segments that the worker has written.
    segments: usize,
    /// The number of segments that the table requires.
    rows: usize,
}

impl Runs {
    /// Runs a Job with these answers, and the floor, in turns for a number of rounds.
    async fn new(root: &Path, plan: Plan, rounds: usize) -> Self {
        let mut runs = Self { worker: Vec::new(), floor: Vec::new(), segments: 0, rows: 0 };
        let mut actions: Arc<[Action]> = Arc::new([]);
        for round in 0..rounds {
            let servers = Servers::start(plan).await;
            let job = if plan.in_pod {
                Job::reading(root, servers, plan.result).await
            } else {
                Job::new(root, servers, WINDOW).await
            };
            job.run(1).await;
            runs.worker.push(job.servers.steps());
            if round == 0 {
                let rows = rows(&job.lines());
                (runs.segments, runs.rows) = (job.segments(), rows.len());
                actions = floor::actions(&rows, &job.servers.seen()).into();
            }
            drop(job);
            let servers = Servers::start(plan).await;
            let (path, base, actions) = (crate::new_dir(root), servers.base.clone(), actions.clone());
            tokio::task::spawn_blocking(move || floor::run(&actions, &base, &path)).await.unwrap();
            runs.floor.push(servers.steps());
        }
        runs
    }

    /// Returns the average time of some steps, for the worker and for the floor.
    fn mean(&self, steps: std::ops::Range<usize>) -> (Duration, Duration) {
        let mean = |runs: &[Vec<Duration>]| {
            let typical = typical(runs);
            let steps = &typical[steps.start..steps.end.min(typical.len())];
            steps.iter().sum::<Duration>() / u32::try_from(steps.len()).unwrap()
        };
        (mean(&self.worker), mean(&self.floor))
    }
}

/// Returns the plan of a Job with this number of answers, whose calls use the MCP server.
fn plan(answers: usize) -> Plan {
    Plan { answers, result: RESULT_BYTES, in_pod: false, at_once: 1 }
}

/// Measures steps that read only inside of the pod. The floor writes one segment for each of them.
pub(crate) async fn measure_reads(figures: &mut Figures, root: &Path) {
    const STEPS: usize = 50;
    let reads = Runs::new(root, Plan { in_pod: true, ..plan(STEPS + 1) }, 15).await;
    let superfluous = reads.segments.abs_diff(reads.rows);
    figures.require("reads", "segments that the table does not require", (count(superfluous), "n"), 0.0);
    figures.report("reads", "segments of a Job with 50 steps", count(reads.segments), "n");
    let (worker, floor) = reads.mean(0..STEPS);
    figures.report("reads", "a step over 50, worker", us(worker), "us");
    figures.report("reads", "a step over 50, floor", us(floor), "us");
    figures.require("reads", "a step over 50, worker to floor", (ratio(worker, floor), "x"), 1.6);
}

/// Measures the steps with the log on a disk, and checks the goals.
pub(crate) async fn measure(figures: &mut Figures, root: &Path) {
    let fifty = Runs::new(root, plan(50), 15).await;
    let superfluous = fifty.segments.abs_diff(fifty.rows);
    figures.require("steps", "segments that the table does not require", (count(superfluous), "n"), 0.0);
    let (worker, floor) = fifty.mean(0..50);
    figures.report("steps", "a step over 50, worker", us(worker), "us");
    figures.report("steps", "a step over 50, floor", us(floor), "us");
    figures.require("steps", "a step over 50, worker to floor", (ratio(worker, floor), "x"), 1.5);
    growth("steps", figures, &Runs::new(root, plan(506), 5).await, Some(1.1));
}

/// Measures the steps with the log in memory, without goals. A sync takes no time there, so the figures show the computation only.
pub(crate) async fn report(figures: &mut Figures, root: &Path) {
    let runs = Runs::new(root, plan(506), 5).await;
    let (worker, floor) = runs.mean(0..50);
    figures.report("memory", "a step over 50, worker", us(worker), "us");
    figures.report("memory", "a step over 50, floor", us(floor), "us");
    figures.report("memory", "a step over 50, worker to floor", ratio(worker, floor), "x");
    growth("memory", figures, &runs, None);
}

/// Adds the figures that show how the time of a step grows with the length of the conversation.
fn growth(section: &'static str, figures: &mut Figures, runs: &Runs, limit: Option<f64>) {
    let mut ratios = Vec::new();
    for step in [10, 500] {
        let (worker, floor) = runs.mean(step - AROUND / 2..step + AROUND / 2);
        figures.report(section, format!("step {step}, worker"), us(worker), "us");
        figures.report(section, format!("step {step}, floor"), us(floor), "us");
        figures.report(section, format!("step {step}, worker to floor"), ratio(worker, floor), "x");
        ratios.push(ratio(worker, floor));
    }
    let (name, grown) = ("the ratio at step 500 to that at step 10", ratios[1] / ratios[0]);
    match limit {
        Some(limit) => figures.require(section, name, (grown, "x"), limit),
        None => figures.report(section, name, grown, "x"),
    }
}
