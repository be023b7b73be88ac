//! Removes the directory of a deleted Skill from a memory: `bloomery-worker reclaim`.
//!
//! The directory is renamed first. So a new Skill of the same name begins with a new directory, and an interrupted removal is continued
//! without harm to it. Links are removed and never followed.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// The beginning of the name of a directory that is being removed. No Skill can have such a name.
const RENAMED_PREFIX: &str = ".reclaimed-";

/// The reason why a directory is not removed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The name is not that of a directory in the memory.
    #[error("{0:?} is not the name of a directory")]
    Name(String),
    /// A file operation failed.
    #[error("cannot {action} {}: {source}", .path.display())]
    Io {
        /// The operation.
        action: &'static str,
        /// Its path.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
}

/// The part of a directory that is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Left {
    /// Nothing.
    Nothing,
    /// The empty directory, because the worker may not change the memory's top directory.
    EmptyDirectory,
}

/// Removes the directory of the Skill `skill` from `memory`. `id` is unique to the Skill, and the same if the removal is repeated.
///
/// # Errors
/// If a part of the directory cannot be removed. The removal can be repeated.
pub fn reclaim(memory: &Path, skill: &str, id: &str) -> Result<Left, Error> {
    for name in [skill, id] {
        if name.is_empty() || name.starts_with('.') || name.contains(['/', '\0']) {
            return Err(Error::Name(name.to_owned()));
        }
    }
    let (dir, renamed) = (memory.join(skill), memory.join(format!("{RENAMED_PREFIX}{id}")));
    // An earlier, interrupted removal has left it.
    remove(&renamed)?;
    match fs::rename(&dir, &renamed) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Left::Nothing),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => return empty(&dir),
        Err(source) => return Err(Error::Io { action: "rename", path: dir, source }),
    }
    remove(&renamed)?;
    // A failure only means that the removal may have to be repeated after a crash of the node.
    let _ = File::open(memory).and_then(|memory| memory.sync_all());
    Ok(Left::Nothing)
}

/// Removes the content of a directory whose parent cannot be changed, and the directory itself if that is possible.
fn empty(dir: &Path) -> Result<Left, Error> {
    let failed = |action| move |source| Error::Io { action, path: dir.to_owned(), source };
    for entry in fs::read_dir(dir).map_err(failed("list"))? {
        remove(&entry.map_err(failed("list"))?.path())?;
    }
    match fs::remove_dir(dir) {
        Ok(()) => Ok(Left::Nothing),
        Err(error) if error.kind() == ErrorKind::PermissionDenied => Ok(Left::EmptyDirectory),
        Err(source) => Err(failed("remove")(source)),
    }
}

/// Removes a file, a link, or a directory with its content, unless it does not exist.
fn remove(path: &Path) -> Result<(), Error> {
    let removed = match fs::symlink_metadata(path) {
        Ok(metadata) if metadata.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        other => other.map_err(|source| Error::Io { action: "remove", path: path.to_owned(), source }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    fn memory() -> tempfile::TempDir {
        let memory = tempfile::tempdir().unwrap();
        fs::create_dir_all(memory.path().join("orders/jobs/u-1")).unwrap();
        fs::write(memory.path().join("orders/jobs/u-1/1.jsonl"), "{}").unwrap();
        fs::create_dir_all(memory.path().join("other")).unwrap();
        memory
    }

    #[test]
    fn only_the_directory_of_the_skill_is_removed_and_again_is_no_error() {
        let memory = memory();
        for _ in 0..2 {
            assert_eq!(reclaim(memory.path(), "orders", "u-skill").unwrap(), Left::Nothing);
            assert_eq!(names(memory.path()), ["other"]);
        }
    }

    #[test]
    fn an_interrupted_removal_is_continued_and_spares_a_new_directory_of_the_name() {
        let memory = memory();
        fs::rename(memory.path().join("orders"), memory.path().join(".reclaimed-u-skill")).unwrap();
        assert_eq!(reclaim(memory.path(), "gone", "u-skill").unwrap(), Left::Nothing);
        assert_eq!(names(memory.path()), ["other"]);
    }

    #[test]
    fn links_are_removed_and_not_followed() {
        let memory = memory();
        symlink(memory.path().join("other"), memory.path().join("orders/link")).unwrap();
        fs::write(memory.path().join("other/kept"), "").unwrap();
        symlink(memory.path().join("other"), memory.path().join("linked")).unwrap();
        for skill in ["orders", "linked"] {
            reclaim(memory.path(), skill, "u-skill").unwrap();
        }
        assert_eq!(names(memory.path()), ["other"]);
        assert_eq!(names(&memory.path().join("other")), ["kept"]);
    }

    #[test]
    fn a_directory_whose_parent_cannot_be_changed_is_emptied() {
        let memory = memory();
        let lock = |mode| fs::set_permissions(memory.path(), fs::Permissions::from_mode(mode)).unwrap();
        lock(0o555);
        let is_root = fs::write(memory.path().join("probe"), "").is_ok();
        let left = reclaim(memory.path(), "orders", "u-skill");
        lock(0o755);
        if is_root {
            assert_eq!(left.unwrap(), Left::Nothing);
            return;
        }
        assert_eq!(left.unwrap(), Left::EmptyDirectory);
        assert_eq!(names(&memory.path().join("orders")), [""; 0]);
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_refused() {
        let memory = memory();
        for name in ["", "..", ".", "a/b", "/etc", ".reclaimed-x"] {
            assert!(reclaim(memory.path(), name, "u-skill").is_err(), "{name}");
            assert!(reclaim(memory.path(), "orders", name).is_err(), "{name}");
        }
    }
}
