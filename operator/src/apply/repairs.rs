//! The removals of what other writers added, and their bound.

use bloomery_crds::Digest;
use serde_json::Value;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// How often the same additions are removed from an object. A writer that adds them again each time would otherwise keep
/// the operator busy.
const MAX_REPAIRS: u32 = 3;

/// The maximum number of remembered objects. At the limit, all are forgotten.
const MAX_OBJECTS: usize = 8192;

/// How often the last additions to an object were removed, by its UID.
#[derive(Default)]
pub(super) struct Repairs(Mutex<HashMap<String, (Digest, u32)>>);

impl Repairs {
    /// Records a removal with this patch. Returns false if the same one was tried often enough.
    pub(super) fn record(&self, uid: &str, patch: &Value) -> bool {
        let mut repairs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if repairs.len() >= MAX_OBJECTS {
            repairs.clear();
        }
        let patch = Digest::of_value(patch);
        let (last, count) = repairs.entry(uid.to_owned()).or_insert_with(|| (patch.clone(), 0));
        if *last != patch {
            (*last, *count) = (patch, 0);
        }
        *count = count.saturating_add(1);
        *count <= MAX_REPAIRS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_same_additions_are_removed_a_bounded_number_of_times() {
        let repairs = Repairs::default();
        let (one, other) = (json!({"spec": 1}), json!({"spec": 2}));
        for _ in 0..MAX_REPAIRS {
            assert!(repairs.record("u-1", &one));
        }
        assert!(!repairs.record("u-1", &one));
        assert!(repairs.record("u-2", &one), "another object");
        assert!(repairs.record("u-1", &other), "other additions");
    }
}
