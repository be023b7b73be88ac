//! Moves one file within the memory. A file of different content is never overwritten.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The reason why a file is not moved.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Source and target have the same name in the same directory.
    #[error("it is already at {}: {from} is also the directory of the Skill {skill}. Rename it, and migrate it from there", to.display())]
    SamePlace {
        /// The target.
        to: PathBuf,
        /// The directory of the older jobs, in the memory.
        from: String,
        /// The Skill: its directory has the same name, or is a link to that of the older jobs.
        skill: String,
    },
    /// The target exists, with other content.
    #[error("{} exists, and is a different file", .0.display())]
    Exists(PathBuf),
    /// The target cannot be examined.
    #[error("{} cannot be examined: {source}", to.display())]
    Unknown {
        /// The target.
        to: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The target's directory cannot be created.
    #[error("{} cannot be created: {source}", dir.display())]
    Directory {
        /// The directory.
        dir: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// Source and target are on two file systems.
    #[error(
        "{} is on another file system than {}: copy the file there yourself, then remove it here",
        to.display(),
        from.display()
    )]
    OtherFileSystem {
        /// The target.
        to: PathBuf,
        /// The source.
        from: PathBuf,
    },
    /// The file has its new name, and the old name cannot be removed.
    #[error("the file is at its new path too, and cannot be removed from the old one: {0}")]
    NotRemoved(#[source] io::Error),
    /// Another IO error.
    #[error(transparent)]
    Io(io::Error),
}

/// Checks that a file can be moved. Both paths are relative to the memory.
///
/// # Errors
/// If the file cannot be moved.
pub fn check(memory: &Path, from: &Path, to: &Path) -> Result<(), Error> {
    let (source, target) = (memory.join(from), memory.join(to));
    if is_same_place(&source, &target) {
        let first =
            |path: &Path| path.iter().next().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        return Err(Error::SamePlace { to: to.to_owned(), from: first(from), skill: first(to) });
    }
    match fs::symlink_metadata(&target) {
        Ok(_) if has_same_content(&source, &target) => Ok(()),
        Ok(_) => Err(Error::Exists(to.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(Error::Unknown { to: to.to_owned(), source }),
    }
}

/// Returns whether two paths lead to the same entry of the same directory, possibly through links. Hard links to one file in two
/// directories are not the same entry: an interrupted move leaves such links.
fn is_same_place(one: &Path, other: &Path) -> bool {
    let directory =
        |file: &Path| file.parent().and_then(|dir| fs::metadata(dir).ok()).map(|dir| (dir.dev(), dir.ino()));
    one.file_name() == other.file_name() && directory(one).is_some_and(|id| directory(other) == Some(id))
}

/// Moves a file. It links the new name before it removes the old one, so that an interrupted move can be repeated.
///
/// # Errors
/// If the file cannot be moved. It then keeps its old name.
pub fn perform(memory: &Path, from: &Path, to: &Path) -> Result<(), Error> {
    let (source, target) = (memory.join(from), memory.join(to));
    let dir = target.parent().unwrap_or(memory);
    fs::create_dir_all(dir).map_err(|source| Error::Directory { dir: dir.to_owned(), source })?;
    check(memory, from, to)?;
    match fs::hard_link(&source, &target) {
        // For example, an interrupted move has linked the file. The content is compared below.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            return Err(Error::OtherFileSystem { to: to.to_owned(), from: from.to_owned() });
        }
        linked => linked.map_err(Error::Io)?,
    }
    // The old name is removed only if the new name has the same content.
    if is_same_place(&source, &target) || !has_same_content(&source, &target) {
        return Err(Error::Exists(to.to_owned()));
    }
    // The new name is on disk before the old one is removed.
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(Error::Io)?;
    fs::remove_file(&source).map_err(Error::NotRemoved)
}

/// Returns whether two paths are regular files with the same content, or two hard links to one file.
fn has_same_content(one: &Path, other: &Path) -> bool {
    let open = |file: &Path| {
        let is_file = fs::symlink_metadata(file).is_ok_and(|metadata| metadata.is_file());
        is_file.then(|| File::open(file).ok()).flatten()
    };
    let (Some(one), Some(other)) = (open(one), open(other)) else { return false };
    let (Ok(first), Ok(second)) = (one.metadata(), other.metadata()) else { return false };
    if (first.dev(), first.ino()) == (second.dev(), second.ino()) {
        // With one link only, both paths are the same: removing one would remove the file.
        return first.nlink() > 1;
    }
    let mut other_bytes = io::BufReader::new(other).bytes();
    let is_equal = io::BufReader::new(one).bytes().all(|byte| match (byte, other_bytes.next()) {
        (Ok(byte), Some(Ok(other))) => byte == other,
        _ => false,
    });
    is_equal && other_bytes.next().is_none()
}
