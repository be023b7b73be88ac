//! Who selected the tools that a model is shown.

use serde::{Deserialize, Serialize};

/// Who selected the tools that a model is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, strum::Display)]
#[serde(rename_all = "camelCase")]
#[strum(serialize_all = "lowercase")]
pub enum Selector {
    /// A model was asked.
    Model,
    /// A model was asked the same not long ago, for another Job of the Skill.
    Memory,
    /// The first of the catalogue, because no answer of a model could be used, or no room was left.
    Order,
}
