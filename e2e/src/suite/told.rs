//! How a case ended, told the same way wherever it was held.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use bloomery_crds::outcome::{Outcome, Phase};
use bloomery_crds::v1alpha1::{Gates, JobResult, JobStatus, LlmCalls, WaitingFor, WorkflowProgress};
use serde::Serialize;
use serde_json::Value;

use crate::ledger::Summary;

/// Says that what is told is to be written and not compared.
const WRITE: &str = "SUITE_WRITE";

/// What a person sees of the Jobs of a case, and what really happened. What differs from place to place is left out:
/// pods, times, and tokens, since a path is longer here than there.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Told {
    jobs: Vec<JobTold>,
    /// How often each order was refunded.
    refunds: BTreeMap<String, u64>,
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
    llm_calls: Option<LlmCalls>,
    tool_calls: Option<u32>,
}

impl Told {
    /// Adds a Job by its status.
    pub fn add(&mut self, status: JobStatus) {
        let JobStatus { phase, outcome, result, gates, workflows, waiting_for, usage, .. } = status;
        let (llm_calls, tool_calls) = usage.map(|usage| (usage.llm_calls, usage.tool_calls)).unzip();
        self.jobs.push(JobTold { phase, outcome, result, gates, workflows, waiting_for, llm_calls, tool_calls });
    }

    /// Fails unless it is what is told of the case.
    pub fn is_as_told(mut self, case: &str, ledger: &Summary) {
        self.refunds = ledger.orders.iter().map(|(order, effects)| (order.clone(), effects.effects)).collect();
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

fn file(case: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src/suite/told").join(format!("{case}.yaml"))
}
