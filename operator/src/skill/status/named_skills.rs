//! Describes the Skills that a Skill names and that do not exist.

use super::super::named_skills::NamedSkills;
use super::finding::Finding;
use crate::listing::{MAX_LIST_BYTES, join_sentences};
use bloomery_crds::conditions::{ConditionType, Observation, Reason};

/// Describes the missing Skills. Jobs run without them, because a Skill may be applied before those that it names.
pub(super) fn finding(named: &NamedSkills) -> Option<Finding> {
    let message = join_sentences(&named.missing, MAX_LIST_BYTES);
    let observation = Observation::fails(ConditionType::SubskillsFound, Reason::SubskillMissing, message);
    (!named.missing.is_empty()).then_some(Finding { observation, blocker: None })
}
