//! How a case ended, told the same way wherever it was held.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bloomery_crds::outcome::{Outcome, Phase};
use bloomery_crds::v1alpha1::{Gates, JobResult, JobStatus, LlmCalls, ToolName, WaitingFor, WorkflowProgress};
use serde::Serialize;
use serde_json::Value;

use crate::ledger::{OrderSummary, Summary};

/// Says that what is told is to be written and not compared.
const WRITE: &str = "SUITE_WRITE";

/// What a person sees of the Jobs of a case, and what really happened. What differs from place to place is left out:
/// pods, times, the addresses of servers, and tokens, since a path is longer here than there.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    jobs: Vec<JobTold>,
    /// What the ledger has of each order.
    ledger: BTreeMap<String, Effects>,
}

/// How often an order was refunded, and by how many calls.
#[derive(Debug, Serialize)]
struct Effects {
    effects: u64,
    calls: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct JobTold {
    phase: Option<Phase>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<JobResult>,
    gates: Option<Gates>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    workflows: Vec<WorkflowProgress>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_for: Option<WaitingFor>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_names: Vec<ToolName>,
    llm_calls: Option<LlmCalls>,
    tool_calls: Option<u32>,
    /// The kinds of the log's events, in their order.
    events: Vec<String>,
}

impl Told {
    /// Adds a Job by its status and by what its worker printed.
    pub fn add(&mut self, status: JobStatus, printed: &str) {
        let JobStatus { phase, mut outcome, result, gates, workflows, waiting_for, tool_names, usage, .. } = status;
        let (llm_calls, tool_calls) = usage.map(|usage| (usage.llm_calls, usage.tool_calls)).unzip();
        if let Some(outcome) = &mut outcome {
            outcome.message = without_hosts(&outcome.message);
        }
        let events = printed.lines().filter_map(kind).collect();
        // The names of its Approvals are of that Job, and so is the time; a terminal has none.
        let waiting_for = waiting_for.map(|waiting| WaitingFor { approvals: Vec::new(), since: None, ..waiting });
        self.jobs.push(JobTold {
            phase,
            outcome,
            result,
            gates,
            workflows,
            waiting_for,
            tool_names,
            llm_calls,
            tool_calls,
            events,
        });
    }

    /// Fails unless it is what is told of the case.
    pub fn is_as_told(mut self, case: &str, ledger: &Summary) {
        assert_eq!(ledger.without_call_key, 0, "each effect has the key of its call: {ledger:#?}");
        let effects = |summary: &OrderSummary| Effects { effects: summary.effects, calls: summary.call_keys.len() };
        self.ledger = ledger.orders.iter().map(|(order, summary)| (order.clone(), effects(summary))).collect();
        let seen = serde_yaml::to_string(&self).expect("it can be written");
        let file = file(case);
        if std::env::var_os(WRITE).is_some() {
            std::fs::write(&file, seen).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            return;
        }
        let told = std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}\n{seen}", file.display()));
        let read = |text: &str| serde_yaml::from_str::<Value>(text).expect("what is told is YAML");
        assert_eq!(read(&seen), read(&told), "{} says something else than what was seen:\n{seen}", file.display());
    }
}

/// Fails unless these cases, and no others, are told of.
pub fn are_all_told(cases: &[&str]) {
    let files = std::fs::read_dir(directory()).expect("the directory can be read");
    let names = files.map(|file| file.expect("an entry").file_name().to_string_lossy().into_owned());
    let told: BTreeSet<String> = names.filter_map(|name| name.strip_suffix(".yaml").map(str::to_owned)).collect();
    assert_eq!(told, cases.iter().map(|case| (*case).to_owned()).collect());
}

/// A sentence without the hosts in its URLs.
fn without_hosts(sentence: &str) -> String {
    let mut parts = sentence.split("http://");
    let first = parts.next().unwrap_or_default();
    let rest = parts.map(|part| part.find('/').and_then(|at| part.get(at..)).unwrap_or(part));
    rest.fold(first.to_owned(), |said, part| said + "http://…" + part)
}

/// The kind of the event that a line tells of: a time, its number, its kind.
fn kind(line: &str) -> Option<String> {
    let mut words = line.split_whitespace().skip(1);
    words.next()?.parse::<u64>().ok()?;
    words.next().map(str::to_owned)
}

fn file(case: &str) -> PathBuf {
    directory().join(format!("{case}.yaml"))
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/suite/told")
}
