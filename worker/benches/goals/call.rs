//! A call of a tool, through gate and log, beside a call by rmcp's own client after one segment. Both stand where a worker
//! makes its calls, after an answer of the model: a call in a loop of its own finds warm caches that no step has. So all
//! runs ask the same questions by the same client, each with its segment, and what the questions take is taken away.

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
use bloomery_models::{Clients, RetryPolicy};
use bloomery_redact::Redactor;
use rmcp::model::CallToolRequestParams;
use rmcp::service::ServiceExt;
use rmcp::transport::StreamableHttpClientTransport;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

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
        let steps = Arc::new(Steps::new(&job.lines()));
        drop(job);
        asking.push(walk(root, plan, steps.clone(), false).await);
        bare.push(walk(root, plan, steps, true).await);
    }
    let asking = typical(&asking);
    let calls = |runs: &[Vec<Duration>]| -> Vec<Duration> {
        typical(runs).iter().zip(&asking).map(|(step, ask)| step.saturating_sub(*ask)).collect()
    };
    let (worker, bare) = (calls(&worker), median(calls(&bare)));
    // The script asks for a tool that reads, and for one that does not, by turns.
    let of = |first: usize| median(worker.iter().skip(first).step_by(2).copied());
    let (read, effect) = (of(0), of(1));
    figures.report("call", "a bare call and one segment", us(bare), "us");
    figures.report("call", "a read through gate and log", us(read), "us");
    figures.report("call", "an effect through gate and log", us(effect), "us");
    figures.decide("call", "a read, to the bare call", (ratio(read, bare), "x"), 2.0);
    figures.decide("call", "an effect, to the bare call", (ratio(effect, bare), "x"), 2.0);
    figures.decide("call", "a read, above the bare call", (us(read) - us(bare), "us"), 150.0);
}

/// Asks the questions with the worker's own client, and where `calls`, calls the tools of the script with rmcp's own;
/// says how long each step took.
async fn walk(root: &Path, plan: Plan, steps: Arc<Steps>, calls: bool) -> Vec<Duration> {
    let servers = Servers::start(plan).await;
    let (path, base) = (crate::fresh(root), servers.base.clone());
    let walking = move || {
        // On a thread and a runtime of its own, as a worker has them.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let retry_policy = RetryPolicy::new(Duration::ZERO);
            let endpoint = job::model(&base, WINDOW);
            let model = Clients::new(&[endpoint], "uid-j", &retry_policy, &Redactor::default()).unwrap();
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
    tokio::task::spawn_blocking(walking).await.unwrap();
    servers.steps()
}

/// What the main loop of a run did.
struct Steps {
    /// The conversation at its end: each request has a part of its turns.
    conversation: Conversation,
    each: Vec<Step>,
}

/// A question and a call, each with the segment before it.
struct Step {
    ask: Row,
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
