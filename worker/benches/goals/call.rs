//! A call of a tool, through gate and log: what is left of a step of the worker where the question to the model, by the
//! same client and with its segment, is taken away. The floor is a bare client of rmcp and one segment.

use crate::figures::{Figures, us};
use crate::floor;
use crate::job::{self, Job};
use crate::rows::{Act, rows};
use crate::script;
use crate::servers::{Plan, Servers, TOOLS};
use crate::skill::{self, WINDOW};
use crate::times::{median, ratio, typical};
use bloomery_crds::v1alpha1::Stage;
use bloomery_engine::line::Chain;
use bloomery_engine::step::ModelRequest;
use bloomery_engine::{Conversation, Event};
use bloomery_worker::model::{Clients, Patience};
use bloomery_worker::redact::Redactor;
use bloomery_worker::waits::Waits;
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
        let questions = Arc::new(Questions::new(&job.lines()));
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

/// Asks the questions alone, with the worker's own client, and says how long each step took.
async fn ask(root: &Path, plan: Plan, asked: Arc<Questions>) -> Vec<Duration> {
    let servers = Servers::start(plan).await;
    let dir = tempfile::tempdir_in(root).unwrap();
    let (path, endpoint) = (dir.path().to_owned(), job::model(&servers.base, WINDOW));
    let asking = move || {
        // On a thread and a runtime of its own, as a worker has them.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let patience = Patience::of(Duration::ZERO);
            let clients = Clients::new(&[endpoint], "uid-j", &patience, &Redactor::default()).unwrap();
            for question in &asked.each {
                floor::write(&path, question.first, question.text.as_bytes()).unwrap();
                let request = asked.request(question);
                let waits = Waits::new(&|_| {});
                Box::pin(clients.complete(&request, Duration::from_mins(1), &waits)).await.unwrap();
            }
        });
    };
    tokio::task::spawn_blocking(asking).await.unwrap();
    servers.steps()
}

/// What the main loop of a run asked.
struct Questions {
    /// The conversation at its end: each request has a part of its turns.
    conversation: Conversation,
    each: Vec<Question>,
}

/// A question and the segment before it.
struct Question {
    first: u64,
    text: String,
    turns: usize,
}

impl Questions {
    fn new(lines: &[String]) -> Self {
        let mut conversation = Conversation::new(skill::run(skill::skill()));
        let mut chain = Chain::new(crate::SOURCE);
        let mut each = Vec::new();
        for row in rows(lines) {
            for line in row.text.lines() {
                conversation.apply(&chain.read(line).unwrap());
            }
            let asks = |event: &Event| matches!(event, Event::ModelRequested { stage: Stage::Plan, .. });
            if row.act == Act::Ask && row.events.last().is_some_and(asks) {
                each.push(Question { first: row.first, text: row.text, turns: conversation.turns().len() });
            }
        }
        Self { conversation, each }
    }

    fn request(&self, question: &Question) -> ModelRequest<'_> {
        ModelRequest {
            stage: Stage::Plan,
            model: "default",
            system: self.conversation.system().unwrap().into(),
            turns: self.conversation.turns()[..question.turns].into(),
            history: 0,
            tools: self.conversation.visible(),
            temperature: None,
            form: None,
            reserve: 0,
        }
    }
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
