//! What became of an answer.

use bloomery_crds::v1alpha1::FinalizationAttempt;
use serde::{Deserialize, Serialize};

/// What the finalization gate says of an answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum FinalRuling {
    /// The form is wrong: asked once more, and no attempt is counted.
    FormError(FinalizationAttempt),
    /// An attempt, passed or failed.
    Attempt(FinalizationAttempt),
    /// The form is right, and the Skill wants no model to rule on the rest.
    Skipped,
    /// The model came back from a failed attempt without new evidence.
    NoNewEvidence,
}

/// What became of an answer that passed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Polish {
    /// Its prose in the persona's voice.
    Polished(String),
    /// It stands as it was, and why.
    Kept(String),
}
