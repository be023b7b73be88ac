//! Publishes Kubernetes Events.

use bloomery_crds::conditions::Reason;
use bloomery_crds::text::bounded;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::core::Resource;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// The maximum number of objects whose last Event is remembered.
const MAX_OBJECTS: usize = 4096;

/// Publishes Events, and skips one that equals the last Event of the object.
pub struct Events {
    client: Client,
    reporter: Reporter,
    last: Mutex<LastEvents>,
}

/// The content of an Event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventMessage {
    /// True if a person has to act.
    pub warning: bool,
    /// The reason.
    pub reason: Reason,
    /// The sentence for people: what happened, on which object, what to do.
    pub note: String,
}

impl EventMessage {
    /// An Event about normal progress.
    pub fn normal(reason: Reason, note: impl Into<String>) -> Self {
        Self { warning: false, reason, note: note.into() }
    }

    /// An Event that needs a person.
    pub fn warning(reason: Reason, note: impl Into<String>) -> Self {
        Self { warning: true, reason, note: note.into() }
    }
}

impl Events {
    /// Creates a publisher. `instance` is the name of the operator's pod.
    pub fn new(client: Client, instance: &str) -> Self {
        let reporter = Reporter { controller: "bloomery-operator".to_owned(), instance: Some(instance.to_owned()) };
        Self { client, reporter, last: Mutex::default() }
    }

    /// Publishes an Event about an object, unless it equals the last Event of the object.
    ///
    /// A failure is logged and otherwise ignored: nothing depends on Events.
    pub async fn publish<K: Resource<DynamicType = ()>>(&self, object: &K, message: EventMessage) {
        let reference = object.object_ref(&());
        if self.record_if_new(&reference, &message) {
            self.send(&reference, message).await;
        }
    }

    /// Publishes an Event about an object even if it equals the last Event of the object.
    pub async fn publish_again<K: Resource<DynamicType = ()>>(&self, object: &K, message: EventMessage) {
        let reference = object.object_ref(&());
        self.record_if_new(&reference, &message);
        self.send(&reference, message).await;
    }

    async fn send(&self, reference: &ObjectReference, EventMessage { warning, reason, note }: EventMessage) {
        let event = Event {
            type_: if warning { EventType::Warning } else { EventType::Normal },
            reason: reason.to_string(),
            // The API server refuses notes of more than 1 KiB.
            note: Some(bounded(&note, 1024)),
            action: "Reconcile".to_owned(),
            secondary: None,
        };
        // A recorder merges Events of one reason into a series and keeps the first note, so a second question would
        // repeat the text of the first. A new recorder for each Event avoids that.
        let recorder = Recorder::new(self.client.clone(), self.reporter.clone());
        if let Err(error) = recorder.publish(&event, reference).await {
            let object = format!("{:?}/{:?}", reference.namespace, reference.name);
            tracing::warn!(object, %error, "an Event could not be published");
        }
    }

    /// Records the Event and returns whether it differs from the last one of the object. False for an object that was
    /// never stored.
    fn record_if_new(&self, reference: &ObjectReference, EventMessage { reason, note, .. }: &EventMessage) -> bool {
        let Some(uid) = reference.uid.clone() else { return false };
        self.last.lock().unwrap_or_else(PoisonError::into_inner).record_if_new(uid, *reason, note)
    }
}

/// The last Event of each object, bounded.
#[derive(Default)]
struct LastEvents {
    by_uid: HashMap<String, (Reason, String)>,
    /// The UIDs, in the order in which the objects were first recorded.
    order: VecDeque<String>,
}

impl LastEvents {
    fn record_if_new(&mut self, uid: String, reason: Reason, note: &str) -> bool {
        if self.by_uid.get(&uid).is_some_and(|(last_reason, last_note)| *last_reason == reason && last_note == note) {
            return false;
        }
        if self.by_uid.insert(uid.clone(), (reason, note.to_owned())).is_none() {
            self.order.push_back(uid);
        }
        if self.order.len() > MAX_OBJECTS
            && let Some(oldest) = self.order.pop_front()
        {
            self.by_uid.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_new_if_it_differs_from_the_last_one() {
        let mut last = LastEvents::default();
        let mut record_if_new = |reason, note| last.record_if_new("u-1".to_owned(), reason, note);
        assert!(record_if_new(Reason::ServiceNotFound, "orders"));
        assert!(!record_if_new(Reason::ServiceNotFound, "orders"));
        assert!(record_if_new(Reason::Ready, "orders"));
        assert!(record_if_new(Reason::ServiceNotFound, "orders"));
    }

    #[test]
    fn the_number_of_remembered_objects_is_bounded() {
        let mut last = LastEvents::default();
        for object in 0..2 * MAX_OBJECTS {
            last.record_if_new(object.to_string(), Reason::Ready, "");
        }
        assert_eq!(last.by_uid.len(), MAX_OBJECTS);
    }
}
