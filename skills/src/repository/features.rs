//! The features of a skill that is being converted.

use crate::tree::{Node, Value};

/// Returns the extensions of all features.
pub(super) fn extensions(spec: &mut Node) -> impl Iterator<Item = &mut Node> {
    let features = match spec.get_mut("features").map(|features| &mut features.value) {
        Some(Value::List(features)) => features.as_mut_slice(),
        _ => &mut [],
    };
    features.iter_mut().filter_map(|feature| feature.get_mut("ext"))
}
