//! What the operator says of a run, as events tell of it.

use serde::{Deserialize, Serialize};

/// What is to become of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Directive {
    /// A person has cancelled the Job: it ends.
    Cancel,
    /// The namespace is suspended: the worker parks.
    Park,
}
