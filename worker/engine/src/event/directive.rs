//! What the operator says of a run, as events tell of it.

use bloomery_crds::outcome::OutcomeCode;
use serde::{Deserialize, Serialize};

/// What is to become of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Directive {
    /// A person has cancelled the Job: it ends.
    Cancel,
    /// The namespace is suspended: the worker parks.
    Park,
    /// The Skill of the Job was deleted: it ends.
    SkillDeleted,
}

impl Directive {
    /// How the Job ends that hears it; none where it goes on.
    pub fn ends(self) -> Option<OutcomeCode> {
        match self {
            Self::Cancel => Some(OutcomeCode::Cancelled),
            Self::SkillDeleted => Some(OutcomeCode::SkillDeleted),
            Self::Park => None,
        }
    }
}
