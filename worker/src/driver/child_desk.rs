//! The states of the Job's children in a cluster. Earlier ones come in the Job's part of the run document, and later ones in the
//! operator's answers to reports.

use bloomery_crds::children::{ChildProgress, ChildState};
use std::collections::BTreeMap;
use tokio::sync::watch;

/// Collects the states of children.
#[derive(Debug)]
pub struct ChildDesk(watch::Sender<BTreeMap<String, ChildState>>);

impl ChildDesk {
    /// Creates the desk with the states of the Job's part.
    pub fn new(children: &[ChildState]) -> Self {
        let desk = Self(watch::Sender::new(BTreeMap::new()));
        desk.add(children.to_vec());
        desk
    }

    /// Adds the states of an answer. The end of a child does not change any more.
    pub fn add(&self, children: Vec<ChildState>) {
        self.0.send_if_modified(|states| {
            let mut is_changed = false;
            for child in children {
                if states.get(&child.call).is_none_or(is_running) {
                    is_changed |= states.insert(child.call.clone(), child.clone()).as_ref() != Some(&child);
                }
            }
            is_changed
        });
    }

    /// Waits until the child of a call has ended, or is known not to exist. Returns its state.
    pub async fn end_of(&self, call: &str) -> ChildState {
        let mut states = self.0.subscribe();
        loop {
            if let Some(ended) = states.borrow_and_update().get(call).filter(|state| !is_running(state)) {
                return ended.clone();
            }
            // The sender is `self`, so the channel stays open.
            let _ = states.changed().await;
        }
    }
}

fn is_running(child: &ChildState) -> bool {
    child.state == ChildProgress::Running
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    fn child(call: &str, state: ChildProgress) -> ChildState {
        ChildState { call: call.into(), job: "refund-1".into(), state }
    }

    #[tokio::test]
    async fn the_end_of_a_child_is_returned_once_it_is_known_and_does_not_change() {
        let desk = ChildDesk::new(&[child("7-0", ChildProgress::Running), child("7-1", ChildProgress::Deleted)]);
        assert_eq!(desk.end_of("7-1").await.state, ChildProgress::Deleted);
        assert_eq!(desk.end_of("7-0").now_or_never(), None);
        let refused = child("7-0", ChildProgress::Refused { reason: "too deep".into() });
        let added = async {
            desk.add(vec![child("7-0", ChildProgress::Running)]);
            tokio::task::yield_now().await;
            desk.add(vec![refused.clone()]);
        };
        let (end, ()) = tokio::join!(desk.end_of("7-0"), added);
        assert_eq!(end, refused);
        desk.add(vec![child("7-0", ChildProgress::Running)]);
        assert_eq!(desk.end_of("7-0").await, refused);
    }
}
