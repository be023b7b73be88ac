//! Kubernetes Events: what a person wants to be told, once.

use bloomery_crds::conditions::Reason;
use bloomery_crds::text::bounded;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Client;
use kube::core::Resource;
use kube::runtime::events::{Event, EventType, Recorder, Reporter};
use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, PoisonError};

/// How many tellings are remembered, so that none is repeated.
const MAX_OBJECTS: usize = 4096;

/// Tells people, and never twice in a row the same of one object.
pub struct Events {
    client: Client,
    reporter: Reporter,
    last: Mutex<LastEvents>,
}

/// What an event says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventMessage {
    /// Whether somebody has to do something.
    pub warning: bool,
    /// Why, in one word.
    pub reason: Reason,
    /// The sentence: what, which object, what to do.
    pub note: String,
}

impl EventMessage {
    /// Something went as it should.
    pub fn normal(reason: Reason, note: impl Into<String>) -> Self {
        Self { warning: false, reason, note: note.into() }
    }

    /// Something needs a person.
    pub fn warning(reason: Reason, note: impl Into<String>) -> Self {
        Self { warning: true, reason, note: note.into() }
    }
}

impl Events {
    /// Makes a teller; `instance` is the name of this pod.
    pub fn new(client: Client, instance: &str) -> Self {
        let reporter = Reporter { controller: "bloomery-operator".to_owned(), instance: Some(instance.to_owned()) };
        Self { client, reporter, last: Mutex::default() }
    }

    /// Tells of an object, unless that was the last thing told of it.
    ///
    /// A message that cannot be delivered is logged: nothing depends on it.
    pub async fn publish<K: Resource<DynamicType = ()>>(&self, object: &K, message: EventMessage) {
        let reference = object.object_ref(&());
        if self.is_news(&reference, &message) {
            self.send(&reference, message).await;
        }
    }

    /// Tells of an object what has happened again, though it was told before.
    pub async fn publish_again<K: Resource<DynamicType = ()>>(&self, object: &K, message: EventMessage) {
        let reference = object.object_ref(&());
        self.is_news(&reference, &message);
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
        // One recorder makes a series of what has one reason, and keeps the note of the first: another question would be told
        // as the first one. What is the same is not told twice anyway.
        let recorder = Recorder::new(self.client.clone(), self.reporter.clone());
        if let Err(error) = recorder.publish(&event, reference).await {
            let object = format!("{:?}/{:?}", reference.namespace, reference.name);
            tracing::warn!(object, %error, "an event could not be told");
        }
    }

    /// Whether something else was told of the object last; from now on it was this. Of what was never stored nothing is.
    fn is_news(&self, reference: &ObjectReference, EventMessage { reason, note, .. }: &EventMessage) -> bool {
        let Some(uid) = reference.uid.clone() else { return false };
        self.last.lock().unwrap_or_else(PoisonError::into_inner).is_news(uid, *reason, note)
    }
}

/// The last message of each object, bounded.
#[derive(Default)]
struct LastEvents {
    by_uid: HashMap<String, (Reason, String)>,
    order: VecDeque<String>,
}

impl LastEvents {
    fn is_news(&mut self, uid: String, reason: Reason, note: &str) -> bool {
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
    fn the_same_is_told_once_and_a_change_is_news() {
        let mut told = LastEvents::default();
        let mut is_news = |reason, note| told.is_news("u-1".to_owned(), reason, note);
        assert!(is_news(Reason::ServiceNotFound, "orders"));
        assert!(!is_news(Reason::ServiceNotFound, "orders"));
        assert!(is_news(Reason::Ready, "orders"));
        assert!(is_news(Reason::ServiceNotFound, "orders"));
    }

    #[test]
    fn memory_is_bounded() {
        let mut told = LastEvents::default();
        for object in 0..2 * MAX_OBJECTS {
            told.is_news(object.to_string(), Reason::Ready, "");
        }
        assert_eq!(told.by_uid.len(), MAX_OBJECTS);
    }
}
