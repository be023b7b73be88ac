//! Names that people choose.

use crate::finding::quoted;
use crate::schema::patterns::{self, APPROVER};
use bloomery_crds::names::MAX_NAME;

/// The longest name of an approver, in bytes.
const MAX_APPROVER: usize = 64;

/// Returns why a text cannot name one of our objects, as the end of a sentence (`it ...`); nothing if it can.
pub fn name_fault(name: &str) -> Option<String> {
    fault(name, r"^[a-z]([-a-z0-9]*[a-z0-9])?$", MAX_NAME)
}

/// Returns why a text cannot name an approver, as the end of a sentence; nothing if it can.
pub fn approver_fault(name: &str) -> Option<String> {
    fault(name, APPROVER, MAX_APPROVER)
}

fn fault(name: &str, pattern: &str, max_bytes: usize) -> Option<String> {
    if name.len() > max_bytes {
        return Some(format!("has {} characters, and at most {max_bytes} are taken", name.chars().count()));
    }
    let matches = patterns::matches(pattern, name) == Some(true);
    (!matches).then(|| format!("must be {}, and is {}", patterns::words(pattern), quoted(name)))
}
