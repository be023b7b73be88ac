//! A call of a tool, through gate and log: what is left of a step of the worker where the question to the model is
//! taken away. The floor is a bare client of rmcp and one segment.

use crate::figures::{Figures, us};
use crate::floor::{self, Deed};
use crate::job::Job;
use crate::rows::rows;
use crate::script;
use crate::servers::{Plan, Servers, TOOLS};
use crate::skill::WINDOW;
use crate::times::{median, ratio, typical};
use rmcp::model::CallToolRequestParams;
use rmcp::service::ServiceExt;
use rmcp::transport::StreamableHttpClientTransport;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How many steps a run has.
const STEPS: usize = 50;

/// How often both run, by turns.
const ROUNDS: usize = 11;

/// How large the answers of tools are, in bytes.
const RESULT: usize = 400;

/// Decides, on a disk.
pub(crate) async fn measure(figures: &mut Figures, root: &Path) {
    let plan = Plan { answers: STEPS + 1, result: RESULT };
    let (mut worker, mut asking, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let job = Job::new(root, Servers::start(plan).await, WINDOW).await;
        job.run(1).await;
        worker.push(job.servers.steps());
        let questions = floor::questions(&rows(&job.lines()), &job.servers.seen()).into();
        drop(job);
        asking.push(ask(root, plan, questions).await);
        bare.push(call(root, plan).await);
    }
    let (worker, asking) = (typical(&worker), typical(&asking));
    let bare = median(typical(&bare));
    let calls: Vec<Duration> = worker.iter().zip(&asking).map(|(step, ask)| step.saturating_sub(*ask)).collect();
    // The script asks for a tool that reads, and for one that does not, by turns.
    let of = |first: usize| median(calls.iter().skip(first).step_by(2).copied());
    let (read, effect) = (of(0), of(1));
    figures.report("call", "a bare call and one segment", us(bare), "us");
    figures.report("call", "a read through gate and log", us(read), "us");
    figures.report("call", "an effect through gate and log", us(effect), "us");
    figures.decide("call", "a read, to the bare call", (ratio(read, bare), "x"), 2.0);
    figures.decide("call", "an effect, to the bare call", (ratio(effect, bare), "x"), 2.0);
    figures.decide("call", "a read, above the bare call", (us(read) - us(bare), "us"), 150.0);
}

/// Asks the questions alone, and says how long each step took.
async fn ask(root: &Path, plan: Plan, deeds: Arc<[Deed]>) -> Vec<Duration> {
    let servers = Servers::start(plan).await;
    let dir = tempfile::tempdir_in(root).unwrap();
    let (path, base) = (dir.path().to_owned(), servers.base.clone());
    tokio::task::spawn_blocking(move || floor::run(&deeds, &base, &path)).await.unwrap();
    servers.steps()
}

/// Calls the tools of the script with rmcp's own client, and writes one segment before each.
async fn call(root: &Path, plan: Plan) -> Vec<Duration> {
    let servers = Servers::start(plan).await;
    let url = format!("{}{TOOLS}", servers.base);
    let dir = tempfile::tempdir_in(root).unwrap();
    let path = dir.path().to_owned();
    let calls = move || {
        // On a thread and a runtime of its own, as a worker has them.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let client = ().serve(StreamableHttpClientTransport::from_uri(url)).await.unwrap();
            let mut times = Vec::new();
            for n in 0..STEPS {
                let (name, arguments) = script::call(n);
                let line = "x".repeat(1_000);
                let began = Instant::now();
                floor::write(&path, n as u64 + 1, line.as_bytes()).unwrap();
                let arguments = arguments.as_object().unwrap().clone();
                let call = CallToolRequestParams::new(name).with_arguments(arguments);
                client.call_tool(call).await.unwrap();
                times.push(began.elapsed());
            }
            client.cancel().await.unwrap();
            times
        })
    };
    tokio::task::spawn_blocking(calls).await.unwrap()
}
