//! Counts the requests of the main loop that do not begin with the bytes of the request before. A provider's prompt cache needs the same
//! beginning. During the run, the worker is killed several times, and offloads results in two sweeps. After a sweep, the
//! beginning may differ.

use crate::figures::{Figures, count};
use crate::job::Job;
use crate::servers::{Plan, Servers, Target};
use bloomery_crds::v1alpha1::Stage;
use bloomery_engine::Event;
use bloomery_engine::line::Chain;
use std::path::Path;

/// Enough answers for two sweeps, with results that are large enough to be offloaded.
const PLAN: Plan = Plan { answers: 90, result: 3_000, in_pod: false, at_once: 1 };

/// The context window of the model, in tokens. About thirty results fill it.
const WINDOW: u64 = 32_000;

/// The requests during which the worker is killed: before and after sweeps, and twice in a row.
const KILLED_AT: [usize; 6] = [2, 10, 11, 30, 45, 77];

/// Runs a Job whose attempts are killed, and compares the bodies of its requests.
pub(crate) async fn measure(figures: &mut Figures, root: &Path) {
    let job = Job::new(root, Servers::start(PLAN).await, WINDOW).await;
    let mut attempt = 0;
    for request in KILLED_AT {
        attempt += 1;
        *job.servers.silent_at.lock().unwrap() = Some(request);
        let mut child = job.start(attempt);
        tokio::select! {
            () = job.servers.until_asked(request) => child.kill().await.unwrap(),
            ended = child.wait() => panic!("attempt {attempt} ended: {ended:?}"),
        }
    }
    *job.servers.silent_at.lock().unwrap() = None;
    job.run(attempt + 1).await;

    let swept = swept_before(&job.lines());
    let bodies: Vec<_> = job.servers.seen().into_iter().filter(|seen| seen.target == Target::Plan).collect();
    assert_eq!(bodies.len(), swept.len(), "each request is in the log");
    assert_eq!(bodies.len(), PLAN.answers + KILLED_AT.len());
    let (mut steps, mut identical) = (0, 0);
    for (pair, swept) in bodies.windows(2).zip(&swept[1..]) {
        if *swept {
            continue;
        }
        steps += 1;
        let before = pair[0].body.strip_suffix(b"]}").expect("a request ends with the history");
        identical += usize::from(pair[1].body.starts_with(before));
    }
    let sweeps = swept.iter().filter(|swept| **swept).count();
    assert!(sweeps > 0, "nothing was offloaded");
    figures.report("prefix", "kills", count(KILLED_AT.len()), "n");
    figures.report("prefix", "sweeps", count(sweeps), "n");
    figures.report("prefix", "steps outside a sweep", count(steps), "n");
    let broken = steps - identical;
    figures.require("prefix", "of these, not with the prefix before", (count(broken), "n"), 0.0);
}

/// Returns for each request of the main loop in a log whether results were offloaded since the request before.
fn swept_before(lines: &[String]) -> Vec<bool> {
    let mut chain = Chain::new(crate::SOURCE);
    let mut requests = Vec::new();
    let mut swept = false;
    for line in lines {
        match chain.read(line).unwrap().event {
            Event::ResultOffloaded { .. } => swept = true,
            Event::ModelRequested { stage: Stage::Plan, .. } => requests.push(std::mem::take(&mut swept)),
            _ => {}
        }
    }
    requests
}
