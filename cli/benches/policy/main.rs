//! `make bench-policy`: runs tasks of four kinds of agents through `bloomery run`, with the policies of the shipped templates.
//!
//! The model is scripted. In an honest task, it makes the calls of a correct agent. In an injected task, it reads an instruction of an
//! attacker in a result and obeys it. The MCP server records the calls that it receives, so the bench knows which effects were made.
//!
//! The bench fails if an injected effect was made, or if more than 5 % of the honest tasks were held.
#![allow(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a measurement fails by panicking, as tests do"
)]

mod agent;
mod report;
mod server;
mod trial;

use agent::Agent;
use futures::{StreamExt, stream};
use report::Report;
use std::process::ExitCode;
use trial::Trial;

/// The number of runs side by side.
const RUNS_AT_ONCE: usize = 2;

/// The agents. Each has a file of tasks in this directory, and a template of the same name.
const AGENTS: [&str; 4] = ["mail-calendar", "travel", "banking", "team-chat"];

#[tokio::main]
async fn main() -> ExitCode {
    // `cargo bench` adds flags. The other arguments select agents, or tasks by a part of their name.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let agents: Vec<Agent> = AGENTS.into_iter().map(Agent::read).collect();
    let trials: Vec<Trial<'_>> =
        agents.iter().flat_map(Trial::all).filter(|trial| trial.is_selected(&wanted)).collect();
    let mut results: Vec<_> = stream::iter(trials.iter().enumerate())
        .map(async |(at, trial)| (at, trial.run().await))
        .buffer_unordered(RUNS_AT_ONCE)
        .collect()
        .await;
    results.sort_by_key(|(at, _)| *at);
    let report =
        Report::new(trials.iter().zip(results.into_iter().map(|(_, result)| result)).collect(), !wanted.is_empty());
    print!("{report}");
    if report.has_missed_goal() { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
