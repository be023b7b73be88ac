//! The result of a Job, the rulings of the finalization gate on it, and its polish.

use bloomery_crds::report::MAX_FIELDS_BYTES;
use bloomery_crds::v1alpha1::{FinalizationAttempt, JobResult};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The longest prose of a result in `Job.status`, in bytes.
const MAX_STATUS_TEXT_BYTES: usize = 4096;

/// The whole answer of a Job, separated into prose and fields.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FullResult {
    /// The prose.
    pub text: String,
    /// The fields of the output contract.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
    /// Whether the answer passed the finalization gate.
    pub verified: bool,
    /// Whether the reply polisher rewrote the prose.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub polished: bool,
}

impl FullResult {
    /// Returns the result cut to the limits of `Job.status`, with the digest of the whole result.
    pub fn bounded(&self) -> JobResult {
        let fields = Value::Object(self.fields.clone());
        let fits = serde_json::to_string(&fields).is_ok_and(|text| text.len() <= MAX_FIELDS_BYTES);
        JobResult {
            text: bloomery_crds::text::bounded(&self.text, MAX_STATUS_TEXT_BYTES),
            fields: if fits { self.fields.clone() } else { Map::new() },
            digest: Some(bloomery_crds::report::result_digest(&self.text, &self.fields)),
            verified: self.verified,
            polished: self.polished,
        }
    }
}

/// A ruling of the finalization gate on an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FinalizationRuling {
    /// The form is wrong. The model answers again, and this answer does not count as an attempt.
    FormError(FinalizationAttempt),
    /// The answer counts as an attempt, which passed or failed. In this gate, an attempt is a checked answer, not a pod.
    Attempt(FinalizationAttempt),
    /// The form is right, and the Skill has no judging model.
    Skipped,
    /// The model answered again after a failed attempt, without new evidence.
    NoNewEvidence,
}

/// The outcome of polishing an answer that passed the finalization gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PolishOutcome {
    /// The prose was rewritten to this text, in the persona's voice.
    Polished(String),
    /// The prose is unchanged, for this reason.
    Kept(String),
}
