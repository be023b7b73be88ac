//! Measures the worker and `bloomery run` as processes: the time to the first request to the model, and the memory.

use crate::figures::{Figures, ms};
use crate::job::Job;
use crate::memory::{Memory, memory};
use crate::servers::{Plan, Servers};
use crate::skill::{self, WINDOW};
use crate::times::median;
use bloomery_crds::v1alpha1::ModelSpec;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;
use tokio::process::Command;

/// The number of processes whose start is measured.
const STARTS: usize = 21;

/// The variable with the path of the command line, which `hack/bench` builds.
pub(crate) const COMMAND_LINE: &str = "BLOOMERY_BENCH_CLI";

/// The length of an ordinary answer of a tool, in bytes.
const RESULT_BYTES: usize = 400;

/// The length of the answers that fill a context window, in bytes.
const LARGE_RESULT_BYTES: usize = 4_000;

/// The length of an answer that is larger than what a worker may keep in memory, in bytes.
const ENORMOUS_RESULT_BYTES: usize = 64 << 20;

/// The table of `docs/explanation/mcp.md`: `engine.maxResultBytes` and the memory limit of the worker, both in MiB.
const MEMORY_LIMITS: [(u32, f64); 3] = [(8, 256.0), (16, 320.0), (32, 512.0)];

/// The number of calls that a worker makes at the same time.
const READS_AT_ONCE: usize = 4;

/// The room for what an answer has beside its text, in bytes.
const AROUND_TEXT_BYTES: usize = 1_024;

/// Measures the time from the start of a process to the first request that the model receives, without an MCP server.
pub(crate) async fn measure_start(figures: &mut Figures, root: &Path) {
    let mut times = Vec::new();
    for _ in 0..STARTS {
        let job = Job::without_tools(root, Servers::start(plan(1, RESULT_BYTES)).await).await;
        let began = Instant::now();
        let mut child = job.start(1);
        job.servers.until_seen().await;
        times.push(job.servers.seen()[0].at - began);
        child.kill().await.unwrap();
    }
    let took = ms(median(times));
    figures.require("start", "from the process to the first request, without MCP", (took, "ms"), 10.0);
}

/// Measures the same for `bloomery run` with a Skill in a file and a new memory, and its memory at the first request.
pub(crate) async fn measure_local_start(figures: &mut Figures, root: &Path) {
    let Some(program) = std::env::var_os(COMMAND_LINE) else {
        eprintln!("start: `bloomery run` is not measured, because {COMMAND_LINE} is not set");
        return;
    };
    let manifest = serde_json::json!({
        "apiVersion": "bloomery.dev/v1alpha1", "kind": "Skill", "metadata": { "name": "plain" }, "spec": skill::plain(),
    });
    let (mut times, mut peaks) = (Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let dir = crate::new_dir(root);
        fs::write(dir.join("skill.yaml"), manifest.to_string()).unwrap();
        let servers = Servers::start(plan(1, RESULT_BYTES)).await;
        *servers.silent_at.lock().unwrap() = Some(1);
        let began = Instant::now();
        let mut child = Command::new(&program)
            .current_dir(&dir)
            .args(["run", "--goal", skill::GOAL, "--skill", "./skill.yaml", "--memory", "memory", "--model", "gpt-5"])
            .args(["--model-url", &format!("{}/v1", servers.base)])
            .env("OPENAI_API_KEY", "sk-bench")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        servers.until_seen().await;
        times.push(servers.seen()[0].at - began);
        peaks.push(memory(child.id().expect("the process runs")).peak);
        child.kill().await.unwrap();
    }
    figures.require("start", "bloomery run: from the process to the first request", (ms(median(times)), "ms"), 12.0);
    peaks.sort_by(f64::total_cmp);
    figures.require("start", "bloomery run: peak memory at the first request", (peaks[STARTS / 2], "MiB"), 14.0);
    figures.report("start", "bloomery run: the largest of these peaks", peaks[STARTS - 1], "MiB");
}

/// Measures the memory of a worker over many steps, and with an enormous answer.
pub(crate) async fn measure_peak(figures: &mut Figures, root: &Path) {
    let [fifty] = memory_after(root, WINDOW, RESULT_BYTES, [50]).await;
    figures.require("peak", "over 50 steps with MCP", (fifty.peak, "MiB"), 16.0);

    let window = ModelSpec::DEFAULT_CONTEXT_WINDOW;
    let [early, late] = memory_after(root, window, LARGE_RESULT_BYTES, [100, 1_000]).await;
    figures.report("peak", "at step 100", early.now, "MiB");
    figures.report("peak", "at step 1000", late.now, "MiB");
    figures.require("peak", "step 1000 to step 100, in a window of 128,000 tokens", (late.now / early.now, "x"), 1.1);

    let [small] = memory_after(root, WINDOW, RESULT_BYTES, [1]).await;
    let [enormous] = memory_after(root, WINDOW, ENORMOUS_RESULT_BYTES, [1]).await;
    let above = enormous.peak - small.peak;
    figures.require("peak", "an answer of 64 MiB, above one of 400 bytes", (above, "MiB"), 64.0);
}

/// Measures the memory of a worker that reads as many answers at the same time as it can, each of the largest size.
pub(crate) async fn measure_results(figures: &mut Figures, root: &Path) {
    for (size, limit) in MEMORY_LIMITS {
        let bytes = size << 20;
        let result = usize::try_from(bytes).unwrap() - AROUND_TEXT_BYTES;
        let servers = Servers::start(Plan { at_once: READS_AT_ONCE, ..plan(usize::MAX, result) }).await;
        let job = Job::with_max_result_bytes(root, servers, bytes).await;
        let [after] = memory_of(&job, [1]).await;
        let request = job.servers.seen().pop().expect("the model was asked");
        let read = String::from_utf8_lossy(&request.body).matches("[Excerpt of a result of ").count();
        assert_eq!(read, READS_AT_ONCE, "an answer was not read");
        figures.require(
            "results",
            format!("{READS_AT_ONCE} answers of {size} MiB at a time"),
            (after.peak, "MiB"),
            limit,
        );
    }
}

/// Returns the plan of a Job with these answers of the model and of its tools.
fn plan(answers: usize, result: usize) -> Plan {
    Plan { answers, result, in_pod: false, at_once: 1 }
}

/// Returns the memory of a worker after each of these steps. The last step is not answered.
async fn memory_after<const N: usize>(root: &Path, window: u64, result: usize, steps: [usize; N]) -> [Memory; N] {
    let servers = Servers::start(plan(usize::MAX, result)).await;
    memory_of(&Job::new(root, servers, window).await, steps).await
}

/// Returns the memory of the worker of a Job after each of these steps. The last step is not answered.
async fn memory_of<const N: usize>(job: &Job, steps: [usize; N]) -> [Memory; N] {
    *job.servers.silent_at.lock().unwrap() = steps.last().map(|step| step + 1);
    let mut child = job.start(1);
    let id = child.id().expect("the process runs");
    let mut measured = Vec::new();
    for step in steps {
        job.servers.until_asked(step + 1).await;
        measured.push(memory(id));
    }
    child.kill().await.unwrap();
    measured.try_into().unwrap()
}
