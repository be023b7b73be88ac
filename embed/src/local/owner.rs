//! The owner of a memory. A memory belongs to one user, and the commands refuse the memory of another user.

use crate::error::Error;
use crate::local::memory_error::unusable;
use crate::text;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Checks that a directory of a memory belongs to the user of this process, or does not exist. Write access is not enough,
/// because root can write to the memories of all tenants.
///
/// # Errors
/// If the directory belongs to another user, or access to it is denied.
pub fn check(dir: &Path) -> Result<(), Error> {
    let owner = |dir: &Path| fs::metadata(dir).map(|dir| dir.uid());
    // The directory `/proc/self` belongs to the user of this process.
    match (owner(dir), owner(Path::new("/proc/self"))) {
        (Ok(owner), Ok(me)) if owner != me => Err(Error::invalid(format!(
            "the memory {} belongs to user {owner}, and you are user {me}: it may be another tenant's. Name one of yours with \
             `options.memory`",
            text::directory(dir)
        ))),
        (Err(error), _) if error.kind() == io::ErrorKind::PermissionDenied => Err(unusable(dir, &error)),
        _ => Ok(()),
    }
}
