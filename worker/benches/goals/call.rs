//! Compares a tool call of the worker with a bare call. The worker's call includes the gate and the log. A bare call is the write of one
//! segment and a call with rmcp's client.
//!
//! All runs make the same requests to the model, because a loop of only calls would have warmer caches than a worker. The time of the
//! requests is measured separately and subtracted.

use crate::figures::{Figures, us};
use crate::floor;
use crate::job::{self, Job};
use crate::rows::{Act, Row, rows};
use crate::script;
use crate::servers::{Plan, Servers, TOOLS};
use crate::skill::{self, WINDOW};
use crate::times::{median, ratio, typical};
use bloomery_crds::v1alpha1::Stage;
use bloomery_engine::line::Chain;
use bloomery_engine::step::ModelRequest;
use bloomery_engine::{Conversation, Event};
use bloomery_http::Pauses;
use bloomery_http::address::AddressPolicy;
use bloomery_models::{Clients, RetryPolicy};
use bloomery_redact::Redactor;
use rmcp::model::CallToolRequestParams;
use rmcp::service::ServiceExt;
use rmcp::transport::StreamableHttpClientTransport;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// The number of steps of a run.
const STEPS: usize = 50;

/// The number of rounds. In each round, the worker and the bare client run one after the other.
const ROUNDS: usize = 11;

/// The length of a tool's answer, in bytes.
const RESULT_BYTES: usize = 400;

/// Measures the calls with the log on a disk, and checks the goals.
pub(crate) async fn measure(figures: &mut Figures, root: &Path) {
    let plan = Plan { answers: STEPS + 1, result: RESULT_BYTES, in_pod: false, at_once: 1 };
    let (mut worker, mut asking, mut bare) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let job = Job::new(root, Servers::start(plan).await, WINDOW).await;
        job.run(1).await;
        worker.push(job.servers.steps());
        let steps = Arc::new(Steps::new(&job.lines()));
        drop(job);
        asking.push(run_bare_client(root, plan, steps.clone(), false).await);
        bare.push(run_bare_client(root, plan, steps, true).await);
    }
    let asking = typical(&asking);
    let calls = |runs: &[Vec<Duration>]| -> Vec<Duration> {
        typical(runs).iter().zip(&asking).map(|(step, ask)| step.saturating_sub(*ask)).collect()
    };
    let (worker, bare) = (calls(&worker), median(calls(&bare)));
    // The script calls a reading tool and another tool in turns.
    let every_second_from = |first: usize| median(worker.iter().skip(first).step_by(2).copied());
    let (read, effect) = (every_second_from(0), every_second_from(1));
    figures.report("call", "a bare call and one segment", us(bare), "us");
    figures.report("call", "a read through gate and log", us(read), "us");
    figures.report("call", "an effect through gate and log", us(effect), "us");
    figures.require("call", "a read, to the bare call", (ratio(read, bare), "x"), 2.0);
    figures.require("call", "an effect, to the bare call", (ratio(effect, bare), "x"), 2.0);
    figures.require("call", "a read, above the bare call", (us(read) - us(bare), "us"), 150.0);
}

/// Makes the requests to the model with the worker's client and, if `calls`, the tool calls with rmcp's client. Returns the time of each
/// step.
async fn run_bare_client(root: &Path, plan: Plan, steps: Arc<Steps>, calls: bool) -> Vec<Duration> {
    let servers = Servers::start(plan).await;
    let (path, base) = (crate::new_dir(root), servers.base.clone());
    let client = move || {
        // The client has a separate thread and runtime, as a worker has.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let retry_policy = RetryPolicy::new(Duration::ZERO);
            let endpoint = job::model(&base, WINDOW);
            let model = Clients::new(
                &[endpoint],
                "uid-j",
                &retry_policy,
                AddressPolicy::for_local_machine(),
                &Redactor::default(),
            )
            .unwrap();
            let tools = ().serve(StreamableHttpClientTransport::from_uri(format!("{base}{TOOLS}"))).await.unwrap();
            for (n, step) in steps.each.iter().enumerate() {
                floor::write(&path, step.ask.first, step.ask.text.as_bytes()).unwrap();
                let request = steps.request(step);
                let waits = Pauses::new(&|_| {});
                Box::pin(model.complete(&request, Duration::from_mins(1), &waits)).await.unwrap();
                if let (true, Some(row)) = (calls, &step.call) {
                    floor::write(&path, row.first, row.text.as_bytes()).unwrap();
                    let (name, arguments) = script::call(n);
                    let arguments = arguments.as_object().unwrap().clone();
                    tools.call_tool(CallToolRequestParams::new(name).with_arguments(arguments)).await.unwrap();
                }
            }
            tools.cancel().await.unwrap();
        });
    };
    tokio::task::spawn_blocking(client).await.unwrap();
    servers.steps()
}

/// The main loop of a run.
struct Steps {
    /// The conversation at its end. Each request contains the turns until then.
    conversation: Conversation,
    each: Vec<Step>,
}

/// A request to the model and a call, each with the segment before it.
struct Step {
    ask: Row,
    /// The number of turns in the request.
    turns: usize,
    call: Option<Row>,
}

impl Steps {
    fn new(lines: &[String]) -> Self {
        let mut conversation = Conversation::new(skill::run(skill::skill()));
        let mut chain = Chain::new(crate::SOURCE);
        let mut each: Vec<Step> = Vec::new();
        for row in rows(lines) {
            for line in row.text.lines() {
                conversation.apply(&chain.read(line).unwrap());
            }
            let asks = |event: &Event| matches!(event, Event::ModelRequested { stage: Stage::Plan, .. });
            match row.act {
                Act::Ask if row.events.last().is_some_and(asks) => {
                    each.push(Step { ask: row, turns: conversation.turns().len(), call: None });
                }
                Act::Call => each.last_mut().unwrap().call = Some(row),
                Act::Ask | Act::Nothing => {}
            }
        }
        Self { conversation, each }
    }

    fn request(&self, step: &Step) -> ModelRequest<'_> {
        ModelRequest {
            stage: Stage::Plan,
            model: "default",
            system: self.conversation.system().unwrap().into(),
            turns: self.conversation.turns()[..step.turns].into(),
            turns_version: 0,
            tools: self.conversation.visible_tools(),
            temperature: None,
            answer_schema: None,
            reserve: 0,
        }
    }
}
