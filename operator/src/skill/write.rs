//! Writes the status of a Skill, and publishes its Events.

use super::events;
use crate::context::Context;
use crate::error::Error;
use crate::first_seen::FirstSeen;
use bloomery_crds::conditions::{ConditionType, is_true};
use bloomery_crds::v1alpha1::{Skill, SkillStatus};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use kube::core::ResourceExt;

/// The time after which a change of a wait is written. An MCP server that starts passes through states that last less than a second.
const SETTLE_TIME: SignedDuration = SignedDuration::from_secs(10);

/// Writes the status if it changed, and publishes the Event for the change. If the Skill waits before and after the change, the change is
/// written once the Skill has differed from its status for [`SETTLE_TIME`]. Returns the time until then.
///
/// # Errors
/// Returns a conflict if another writer was faster, and any other error that may be temporary.
pub async fn write(
    context: &Context,
    differs_since: &FirstSeen,
    skill: &Skill,
    status: &SkillStatus,
    now: Timestamp,
) -> Result<Option<SignedDuration>, Error> {
    let before = skill.status.clone().unwrap_or_default();
    let uid = skill.uid().unwrap_or_default();
    if *status != before && is_same_wait(&before, status) {
        let left = SETTLE_TIME - now.duration_since(differs_since.first_seen(&uid, now));
        if left.is_positive() {
            return Ok(Some(left));
        }
    }
    context.statuses.replace(skill, status.clone()).await?;
    differs_since.forget(&uid);
    events::publish(skill, &before, status, &context.events).await;
    Ok(None)
}

/// Returns whether a Skill waits both before and after a change, with the same spec and revision. Jobs cannot use it in either state,
/// and no person has to act.
fn is_same_wait(before: &SkillStatus, after: &SkillStatus) -> bool {
    let waits = |status: &SkillStatus| is_true(&status.conditions, ConditionType::Reconciling);
    before.observed_generation == after.observed_generation
        && before.revision == after.revision
        && waits(before)
        && waits(after)
}
