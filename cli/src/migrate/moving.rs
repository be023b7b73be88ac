//! Moves one file within the memory. Nothing is replaced, and nothing is lost.

use crate::local::older_jobs;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The reason that a file is not moved.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Source and target are the same file of the same directory. The text says how to change that.
    #[error("{} is the same place: {hint}", to.display())]
    SamePlace {
        /// The target.
        to: PathBuf,
        /// What to do.
        hint: String,
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
        "{} is on another file system than {}, and files are only moved within one: copy it there, and remove it here",
        to.display(),
        from.display()
    )]
    OtherFileSystem {
        /// The target.
        to: PathBuf,
        /// The source.
        from: PathBuf,
    },
    /// The file is at its new place, and cannot be removed from the old one.
    #[error("it is at its new place, and cannot be removed here: {0}")]
    NotRemoved(#[source] io::Error),
    /// Anything else.
    #[error(transparent)]
    Io(io::Error),
}

/// Checks whether a file can be moved. Both paths are relative to the memory.
///
/// # Errors
/// If it cannot.
pub fn check(memory: &Path, from: &Path, to: &Path) -> Result<(), Error> {
    let (source, target) = (memory.join(from), memory.join(to));
    if is_same_place(&source, &target) {
        return Err(Error::SamePlace { to: to.to_owned(), hint: same_place_hint(memory, from, to) });
    }
    match fs::symlink_metadata(&target) {
        Ok(_) if has_same_content(&source, &target) => Ok(()),
        Ok(_) => Err(Error::Exists(to.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(source) => Err(Error::Unknown { to: to.to_owned(), source }),
    }
}

/// Returns what to do where a job's Skill has the directory that is migrated: it has the same name, or is a link to it.
fn same_place_hint(memory: &Path, from: &Path, to: &Path) -> String {
    let first = |path: &Path| path.iter().next().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let (from, skill) = (first(from), first(to));
    if from == skill {
        older_jobs::rename_hint(memory, &from)
    } else {
        format!("{} is a link to {from}. Remove that link first", memory.join(skill).display())
    }
}

/// Returns whether two paths are one entry of one directory, over whatever links. Two names of one file in two directories are
/// not: an interrupted move leaves these.
fn is_same_place(one: &Path, other: &Path) -> bool {
    let directory =
        |file: &Path| file.parent().and_then(|dir| fs::metadata(dir).ok()).map(|dir| (dir.dev(), dir.ino()));
    one.file_name() == other.file_name() && directory(one).is_some_and(|one| directory(other) == Some(one))
}

/// Moves a file. It has both names for a moment, so that an interrupted move can be repeated.
///
/// # Errors
/// If it cannot be moved. Then the file stays where it is.
pub fn perform(memory: &Path, from: &Path, to: &Path) -> Result<(), Error> {
    let (source, target) = (memory.join(from), memory.join(to));
    let dir = target.parent().unwrap_or(memory);
    fs::create_dir_all(dir).map_err(|source| Error::Directory { dir: dir.to_owned(), source })?;
    check(memory, from, to)?;
    match fs::hard_link(&source, &target) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            return Err(Error::OtherFileSystem { to: to.to_owned(), from: from.to_owned() });
        }
        linked => linked.map_err(Error::Io)?,
    }
    // The old name is only removed while the new one has the same content.
    if is_same_place(&source, &target) || !has_same_content(&source, &target) {
        return Err(Error::Exists(to.to_owned()));
    }
    // The new name is on disk before the old one is removed.
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(Error::Io)?;
    fs::remove_file(&source).map_err(Error::NotRemoved)
}

/// Returns whether two paths are regular files with the same content, or two names of one file.
fn has_same_content(one: &Path, other: &Path) -> bool {
    let open = |file: &Path| {
        let is_file = fs::symlink_metadata(file).is_ok_and(|metadata| metadata.is_file());
        is_file.then(|| File::open(file).ok()).flatten()
    };
    let (Some(one), Some(other)) = (open(one), open(other)) else { return false };
    let (Ok(first), Ok(second)) = (one.metadata(), other.metadata()) else { return false };
    if (first.dev(), first.ino()) == (second.dev(), second.ino()) {
        return first.nlink() > 1;
    }
    let mut others = io::BufReader::new(other).bytes();
    let is_equal = io::BufReader::new(one).bytes().all(|byte| match (byte, others.next()) {
        (Ok(byte), Some(Ok(other))) => byte == other,
        _ => false,
    });
    is_equal && others.next().is_none()
}
