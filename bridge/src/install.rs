//! Copies this program into a volume that the container of an MCP server mounts.

use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The mode of the copy: every user may run it, and none may change it.
const MODE: u32 = 0o555;

/// Copies this program to `path`. An init container that is restarted replaces the copy.
pub(crate) fn install(path: &Path) -> io::Result<()> {
    let part = path.with_extension("part");
    let _ = fs::remove_file(&part);
    fs::copy("/proc/self/exe", &part)?;
    fs::set_permissions(&part, Permissions::from_mode(MODE))?;
    fs::rename(&part, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_copy_is_complete_and_can_be_run_by_every_user() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("bloomery-bridge");
        for _ in 0..2 {
            install(&path).unwrap();
        }
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, MODE);
        assert_eq!(fs::metadata(&path).unwrap().len(), fs::metadata("/proc/self/exe").unwrap().len());
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
