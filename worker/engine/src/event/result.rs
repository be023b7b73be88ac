//! The answer of a Job, whole.

use bloomery_crds::report::MAX_FIELDS;
use bloomery_crds::v1alpha1::JobResult;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// An answer with its prose and its fields kept apart.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WholeResult {
    /// The prose.
    pub text: String,
    /// The fields of the output contract.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub fields: Map<String, Value>,
    /// Whether it passed the gate.
    pub verified: bool,
    /// Whether the prose is the reply polisher's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub polished: bool,
}

impl WholeResult {
    /// The part that fits into `Job.status`; its digest is of the whole.
    pub fn bounded(&self) -> JobResult {
        let fields = Value::Object(self.fields.clone());
        let fits = serde_json::to_string(&fields).is_ok_and(|text| text.len() <= MAX_FIELDS);
        JobResult {
            text: bloomery_crds::text::bounded(&self.text, 4096),
            fields: if fits { self.fields.clone() } else { Map::new() },
            digest: Some(bloomery_crds::report::result_digest(&self.text, &self.fields)),
            verified: self.verified,
            polished: self.polished,
        }
    }
}
