//! The rules for names of objects and approvers.

use crate::finding::quoted;
use crate::schema::patterns::{self, APPROVER};
use bloomery_crds::names::MAX_NAME_BYTES;

/// The longest name of an approver, in bytes.
const MAX_APPROVER_BYTES: usize = 64;

/// Returns the fault of a name of a Skill, Job or Model, as the rest of a sentence that begins with "it". `None` if it is valid.
pub fn name_fault(name: &str) -> Option<String> {
    fault(name, r"^[a-z]([-a-z0-9]*[a-z0-9])?$", MAX_NAME_BYTES)
}

/// Returns the fault of a name of an approver, as the rest of a sentence that begins with "it". `None` if it is valid.
pub fn approver_fault(name: &str) -> Option<String> {
    fault(name, APPROVER, MAX_APPROVER_BYTES)
}

fn fault(name: &str, pattern: &str, max_bytes: usize) -> Option<String> {
    if name.len() > max_bytes {
        return Some(format!("has {} characters, and at most {max_bytes} are allowed", name.chars().count()));
    }
    let matches = patterns::matches(pattern, name) == Some(true);
    (!matches).then(|| format!("must be {}, and is {}", patterns::description(pattern), quoted(name)))
}
