//! The Kubernetes Events of a Skill. They report that it is ready, or that a person has to correct something.

use crate::events::{EventMessage, Events};
use bloomery_crds::conditions::{ConditionType, Reason, find, is_true};
use bloomery_crds::v1alpha1::{Skill, SkillStatus};

/// Publishes the Event for the change from one status to the next, if there is one.
pub async fn publish(skill: &Skill, before: &SkillStatus, after: &SkillStatus, events: &Events) {
    if let Some(event) = event_for(before, after) {
        events.publish(skill, event).await;
    }
}

/// Returns the Event for a change of the status; none if the state is the same, or passes without a person.
fn event_for(before: &SkillStatus, after: &SkillStatus) -> Option<EventMessage> {
    let ready = find(&after.conditions, ConditionType::Ready)?;
    let earlier = find(&before.conditions, ConditionType::Ready);
    if earlier.is_some_and(|earlier| earlier.status == ready.status && earlier.reason == ready.reason) {
        return None;
    }
    let reason: Reason = ready.reason.parse().ok()?;
    if ready.status == "True" {
        return Some(EventMessage::normal(reason, &ready.message));
    }
    // The Skill waits for a missing Service or ConfigMap, but usually a person has to create it.
    let is_missing = matches!(reason, Reason::ServiceNotFound | Reason::ListNotFound | Reason::ScriptsNotFound);
    let needs_person = is_true(&after.conditions, ConditionType::Stalled) || is_missing;
    needs_person.then(|| EventMessage::warning(reason, &ready.message))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_crds::conditions::{Health, merge};
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
    use k8s_openapi::jiff::Timestamp;

    fn status(health: Health) -> SkillStatus {
        let conditions = merge(&[], &health.observations(), Some(1), &Time(Timestamp::UNIX_EPOCH));
        SkillStatus { conditions, ..SkillStatus::default() }
    }

    #[test]
    fn only_ready_stalled_and_missing_objects_have_events() {
        let none = SkillStatus::default();
        let progressing = status(Health::Reconciling(Reason::Progressing, "starting".into()));
        let ready = status(Health::Ready(Reason::Ready, "ready".into()));
        let stalled = status(Health::Stalled(Reason::McpUnavailable, "no image".into()));
        let missing = status(Health::Reconciling(Reason::ServiceNotFound, "no Service".into()));
        assert_eq!(event_for(&none, &progressing), None);
        assert_eq!(event_for(&progressing, &ready), Some(EventMessage::normal(Reason::Ready, "ready")));
        assert_eq!(event_for(&ready, &ready), None);
        assert_eq!(event_for(&ready, &stalled), Some(EventMessage::warning(Reason::McpUnavailable, "no image")));
        assert_eq!(event_for(&none, &missing), Some(EventMessage::warning(Reason::ServiceNotFound, "no Service")));
        let no_list = status(Health::Reconciling(Reason::ListNotFound, "no ConfigMap".into()));
        assert_eq!(event_for(&ready, &no_list), Some(EventMessage::warning(Reason::ListNotFound, "no ConfigMap")));
    }
}
