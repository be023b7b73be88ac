//! Lets each pod have one request at a time, so that one token cannot make the operator hold many bodies, or read many Jobs at once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::OwnedMutexGuard;

/// The turn of a pod. It ends when it is dropped.
pub(super) type Turn = OwnedMutexGuard<()>;

/// The pods that have requests in progress, by their UIDs.
#[derive(Debug, Default)]
pub(super) struct Turns(Mutex<HashMap<String, Arc<tokio::sync::Mutex<()>>>>);

impl Turns {
    /// Waits until the pod has no other request in progress.
    pub(super) async fn begin(&self, pod_uid: &str) -> Turn {
        let pod = {
            let mut pods = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // A request that waits or is in progress has a clone.
            pods.retain(|_, pod| Arc::strong_count(pod) > 1);
            pods.entry(pod_uid.to_owned()).or_default().clone()
        };
        pod.lock_owned().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures::FutureExt;

    #[tokio::test]
    async fn a_pod_has_one_turn_at_a_time() {
        let turns = Turns::default();
        let turn = turns.begin("a").await;
        assert!(turns.begin("a").now_or_never().is_none());
        let _other = turns.begin("b").await;
        drop(turn);
        turns.begin("a").await;
        assert_eq!(turns.0.lock().unwrap().len(), 2);
        let _third = turns.begin("c").await;
        assert_eq!(turns.0.lock().unwrap().len(), 2, "pods without a request are forgotten");
    }
}
