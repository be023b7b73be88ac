//! The place of a request in its conversation: a stage, and a number within the stage.

use std::fmt;

use bloomery_crds::v1alpha1::Stage;

/// Every stage, in the order of a conversation.
pub(super) const STAGES: [Stage; 5] =
    [Stage::Intent, Stage::Selection, Stage::Plan, Stage::Finalization, Stage::Polish];

/// The place of a request in its conversation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    /// The stage that sends the request.
    pub(super) stage: Stage,
    /// The number of the answer that the request asks for, among the answers of this stage, from 0.
    pub(super) turn: usize,
}

impl fmt::Display for Place {
    /// Writes the place as in a script: `turn 2`, `polish 0`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = match self.stage {
            Stage::Intent => "intent",
            Stage::Selection => "selection",
            Stage::Plan => "turn",
            Stage::Finalization => "finalization",
            Stage::Polish => "polish",
        };
        write!(f, "{stage} {}", self.turn)
    }
}
