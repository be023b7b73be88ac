//! Where a worker finds things in its pod.

use bloomery_crds::run::{MEMORY_ROOT, REVISION_KEY};

/// The directory of the revision.
pub(super) const REVISION_DIR: &str = "/etc/bloomery/revision";

/// The directory of the Job's part.
pub(super) const JOB_DIR: &str = "/etc/bloomery/job";

/// The file of the Job's part.
pub(super) const JOB_FILE: &str = "part.json";

/// The directory of the model's key.
pub(super) const MODEL_DIR: &str = "/etc/bloomery/model";

/// The directory of the token that reports carry.
pub(super) const TOKEN_DIR: &str = "/var/run/bloomery";

/// The file of the token that reports carry.
pub(super) const TOKEN_FILE: &str = "token";

/// The file of the revision.
pub(super) fn revision() -> String {
    format!("{REVISION_DIR}/{REVISION_KEY}")
}

/// The directory of a slag.
pub(super) fn memory(skill: &str) -> String {
    format!("{MEMORY_ROOT}/{skill}")
}

/// The file of a key of the model's Secret.
pub fn model_key(key: &str) -> String {
    format!("{MODEL_DIR}/{key}")
}
