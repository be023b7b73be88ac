//! The record of how a case ended. It must be the same on a cluster and in local mode.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use bloomery_crds::outcome::{Outcome, Phase};
use bloomery_crds::v1alpha1::{Gates, JobResult, JobStatus, LlmCalls, ToolName, WaitingFor, WorkflowProgress};
use serde::Serialize;
use serde_json::Value;

use crate::ledger::{OrderSummary, Summary};

/// The environment variable that makes tests write the expected records instead of comparing them.
const WRITE_VARIABLE: &str = "SUITE_WRITE";

/// The visible status of the Jobs of a case, and the effects of their calls. It leaves out what differs between a cluster
/// and local mode: pods, times, the addresses of servers, and tokens, which depend on the lengths of paths.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CaseRecord {
    jobs: Vec<JobRecord>,
    /// The ledger's effects, by order.
    ledger: BTreeMap<String, Effects>,
}

/// The number of effects on an order, and the number of calls that caused them.
#[derive(Debug, Serialize)]
struct Effects {
    effects: u64,
    calls: usize,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct JobRecord {
    phase: Option<Phase>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<JobResult>,
    gates: Option<Box<Gates>>,
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

impl CaseRecord {
    /// Adds a Job by its status and the events that its worker printed.
    pub fn add(&mut self, status: JobStatus, printed: &str) {
        let JobStatus { phase, mut outcome, result, gates, workflows, waiting_for, tool_names, usage, .. } = status;
        let (llm_calls, tool_calls) = usage.map(|usage| (usage.llm_calls, usage.tool_calls)).unzip();
        if let Some(outcome) = &mut outcome {
            outcome.message = without_hosts(&outcome.message);
        }
        let events = printed.lines().filter_map(event_kind).collect();
        // The names of Approvals and the time differ from run to run; local mode has neither.
        let waiting_for = waiting_for.map(|waiting| WaitingFor { approvals: Vec::new(), since: None, ..*waiting });
        self.jobs.push(JobRecord {
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

    /// Compares the record with the expected one of the case.
    ///
    /// # Panics
    /// They differ.
    pub fn assert_expected(mut self, case: &str, ledger: &Summary) {
        assert_eq!(ledger.without_call_key, 0, "an effect has no call key: {ledger:#?}");
        let effects = |summary: &OrderSummary| Effects { effects: summary.effects, calls: summary.call_keys.len() };
        self.ledger = ledger.orders.iter().map(|(order, summary)| (order.clone(), effects(summary))).collect();
        let actual = serde_yaml::to_string(&self).expect("the record can be written as YAML");
        let file = file(case);
        if std::env::var_os(WRITE_VARIABLE).is_some() {
            std::fs::write(&file, actual).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
            return;
        }
        let expected =
            std::fs::read_to_string(&file).unwrap_or_else(|error| panic!("{}: {error}\n{actual}", file.display()));
        let parse = |text: &str| serde_yaml::from_str::<Value>(text).expect("a record is YAML");
        assert_eq!(parse(&actual), parse(&expected), "{} differs from this record:\n{actual}", file.display());
    }
}

/// Asserts that each of these cases has an expected record, and that there are no other records.
///
/// # Panics
/// A case has no record, or a record has no case.
pub fn assert_all_recorded(cases: &[&str]) {
    let files = std::fs::read_dir(directory()).expect("the directory can be read");
    let names = files.map(|file| file.expect("an entry").file_name().to_string_lossy().into_owned());
    let recorded: BTreeSet<String> = names.filter_map(|name| name.strip_suffix(".yaml").map(str::to_owned)).collect();
    assert_eq!(recorded, cases.iter().map(|case| (*case).to_owned()).collect());
}

/// Replaces the hosts of the URLs in a sentence.
fn without_hosts(sentence: &str) -> String {
    let mut parts = sentence.split("http://");
    let first = parts.next().unwrap_or_default();
    let rest = parts.map(|part| part.find('/').and_then(|at| part.get(at..)).unwrap_or(part));
    rest.fold(first.to_owned(), |text, part| text + "http://…" + part)
}

/// Reads the kind of the event from a printed line: a time, a number, the kind.
fn event_kind(line: &str) -> Option<String> {
    let mut words = line.split_whitespace().skip(1);
    words.next()?.parse::<u64>().ok()?;
    words.next().map(str::to_owned)
}

fn file(case: &str) -> PathBuf {
    directory().join(format!("{case}.yaml"))
}

fn directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/suite/expected")
}
