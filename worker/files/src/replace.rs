//! Replaces the content of a file atomically: readers see the old content or the new one.
//!
//! The new content is a file of its own, in the same directory, which then takes the name over. So nothing is ever
//! written through a name: a link that was swapped in is replaced, not followed, and other names of the old file keep
//! what they had.

use crate::Error;
use crate::at;
use crate::marks::Marks;
use crate::place::Place;
use crate::root::{Root, kind};
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, File, Metadata, MetadataExt, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The largest file that is changed, in bytes. Its old and new contents are held in memory.
pub(crate) const MAX_BYTES: u64 = 2 * 1024 * 1024;

/// The limit on names tried for a temporary file. Files of dead workers may still exist.
const MAX_NAMES: u32 = 1000;

/// The identity and state of a file, to detect changes by others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    dev: u64,
    ino: u64,
    size: u64,
    changed: (i64, i64),
}

/// The file that is to be written.
#[derive(Debug)]
pub(crate) struct Target {
    parent: Dir,
    name: PathBuf,
    shown: String,
    /// Whether the resource is this one file, which may be a mount point and cannot be replaced by a rename.
    in_place: bool,
    /// The redaction marks that must not replace a secret.
    marks: Marks,
    /// The existing file, if there is one.
    pub(crate) old: Option<Old>,
}

/// An existing file.
#[derive(Debug)]
pub(crate) struct Old {
    identity: Identity,
    mode: u32,
    /// The number of its names (hard links).
    pub(crate) names: u64,
}

/// A content that is staged and not committed yet. Dropping it removes the temporary file.
#[derive(Debug)]
pub(crate) struct Staged {
    target: Target,
    /// The file that is to take the name over, or the content itself where it is written in place; none to remove the name.
    content: Content,
}

#[derive(Debug)]
enum Content {
    Temporary(PathBuf),
    InPlace(Vec<u8>),
    Nothing,
}

impl Target {
    /// Inspects a place. With `makes_directories`, missing directories are created.
    ///
    /// # Errors
    /// A message for the model: a link, a directory, a device and the like are never written.
    pub(crate) fn find(root: &Root, place: &Place, makes_directories: bool) -> Result<Self, Error> {
        let shown = place.shown();
        if place.is_version_controls() || root.is_version_controls {
            return Err(format!("{shown} is version control's own: it is never written; nothing was done.").into());
        }
        let Some((parent, name)) = place.split() else {
            return Err("Say which file is meant: path is the resource itself; nothing was done.".into());
        };
        let dir = root.open_to_write(&parent, makes_directories).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                format!("There is no directory {}: set createDirectories to make it; nothing was done.", parent.shown())
                    .into()
            }
            _ => Error::io(if makes_directories { "made" } else { "opened" }, &parent.shown(), &error),
        })?;
        let old = match dir.symlink_metadata(name) {
            Ok(metadata) if metadata.is_file() => Some(Old::from_metadata(&metadata)),
            Ok(metadata) if metadata.is_symlink() => {
                return Err(format!(
                    "{shown} is a symbolic link to {}, which is not written through: name the file itself; nothing was done.",
                    at::target(&dir, name)
                ).into());
            }
            Ok(metadata) => {
                root.shows(&metadata).map_err(|error| Error::io("written", &shown, &error))?;
                return Err(
                    format!("{shown} is {}, no file that can be written; nothing was done.", kind(&metadata)).into()
                );
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::io("looked at", &shown, &error)),
        };
        let in_place = root.file.is_some();
        if let Some(old) = old.as_ref().filter(|old| in_place && old.names > 1) {
            return Err(format!(
                "{shown} has {} names (hard links), and a resource that is one file is written in its place: that would \
                 change them all; nothing was done.",
                old.names
            ).into());
        }
        Ok(Self { parent: dir, name: name.to_owned(), shown, in_place, marks: root.secrets.marks.clone(), old })
    }

    /// Returns the content of the file; `None` if there is none.
    ///
    /// # Errors
    /// A message for the model.
    pub(crate) fn content(&self) -> Result<Option<Vec<u8>>, Error> {
        let Some(old) = &self.old else { return Ok(None) };
        if old.identity.size > MAX_BYTES {
            let size = old.identity.size;
            return Err(format!(
                "{} has {size} bytes, more than the {MAX_BYTES} that are changed; nothing was done.",
                self.shown
            )
            .into());
        }
        let read = || {
            let file = self.open(OpenOptions::new().read(true))?;
            if Identity::from_metadata(&file.metadata()?) != old.identity {
                return Err(io::Error::other("it is being changed by someone else"));
            }
            let mut content = Vec::new();
            file.take(MAX_BYTES + 1).read_to_end(&mut content)?;
            Ok(content)
        };
        read().map(Some).map_err(|error: io::Error| Error::io("read", &self.shown, &error))
    }

    /// Which file it is, where two names may be of one: by a hard link, or where upper and lower case are the same.
    pub(crate) fn identity(&self) -> Option<(u64, u64)> {
        self.old.as_ref().map(|old| (old.identity.dev, old.identity.ino))
    }

    /// Returns the path for messages.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    fn open(&self, options: &mut OpenOptions) -> io::Result<File> {
        self.parent.open_with(&self.name, options.follow(FollowSymlinks::No).nonblock(true))
    }

    /// Writes a content durably to a temporary file, so that only the rename is left.
    ///
    /// # Errors
    /// If the content cannot be written, or has a mark in the place of a secret. Nothing has changed.
    pub(crate) fn stage(self, content: &[u8]) -> Result<Staged, Error> {
        if self.marks.are_in(content) {
            self.marks.refuse(&self.shown, content, &self.content()?.unwrap_or_default())?;
        }
        if self.in_place {
            return Ok(Staged { target: self, content: Content::InPlace(content.to_owned()) });
        }
        let mode = self.old.as_ref().map(|old| old.mode);
        match temporary(&self.parent, content, mode) {
            Ok(name) => Ok(Staged { target: self, content: Content::Temporary(name) }),
            Err(error) => Err(Error::io("written", &self.shown, &error)),
        }
    }

    /// Stages the removal of the file.
    ///
    /// # Errors
    /// A message for the model: a resource that is one file is not removed.
    pub(crate) fn stage_removal(self) -> Result<Staged, Error> {
        if self.in_place {
            return Err(
                format!("{} is the resource itself, which is not removed; nothing was done.", self.shown).into()
            );
        }
        Ok(Staged { target: self, content: Content::Nothing })
    }
}

impl Staged {
    /// Renames the staged content to its name, durably.
    ///
    /// # Errors
    /// A message for the model; the file has not changed.
    pub(crate) fn commit(mut self) -> Result<(), Error> {
        self.try_commit().map_err(|error| Error::io("written", &self.target.shown, &error))
    }

    fn try_commit(&mut self) -> io::Result<()> {
        let Target { parent, name, old, .. } = &self.target;
        let now = match parent.symlink_metadata(name) {
            Ok(metadata) => Some(Identity::from_metadata(&metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if now != old.as_ref().map(|old| old.identity) {
            return Err(io::Error::other("it was changed meanwhile"));
        }
        match &self.content {
            Content::InPlace(content) => return self.write_in_place(content),
            Content::Temporary(temporary) => parent.rename(temporary, parent, name)?,
            Content::Nothing => parent.remove_file(name)?,
        }
        self.content = Content::Nothing;
        // The change is done. A failed sync only risks losing it in a power failure.
        let _ = self.target.parent.open(".").and_then(|dir| dir.sync_all());
        Ok(())
    }

    fn write_in_place(&self, content: &[u8]) -> io::Result<()> {
        let mut file = self.target.open(OpenOptions::new().write(true))?;
        let metadata = file.metadata()?;
        if !metadata.is_file()
            || self.target.old.as_ref().is_none_or(|old| old.identity != Identity::from_metadata(&metadata))
        {
            return Err(io::Error::other("it was changed meanwhile"));
        }
        file.write_all(content)?;
        file.set_len(content.len() as u64)?;
        file.sync_all()
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Content::Temporary(name) = &self.content {
            // A file that cannot be removed is recognizable by its name.
            let _ = self.target.parent.remove_file(name);
        }
    }
}

impl Old {
    /// Returns its size, in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.identity.size
    }

    fn from_metadata(metadata: &Metadata) -> Self {
        // Rights of another user or group are not handed on to a new content.
        Self { identity: Identity::from_metadata(metadata), mode: metadata.mode() & 0o777, names: metadata.nlink() }
    }
}

impl Identity {
    fn from_metadata(metadata: &Metadata) -> Self {
        Self {
            dev: metadata.dev(),
            ino: metadata.ino(),
            size: metadata.len(),
            changed: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

/// Writes a content to a new file beside the target, and returns its name.
fn temporary(dir: &Dir, content: &[u8], mode: Option<u32>) -> io::Result<PathBuf> {
    let mut options = OpenOptions::new();
    // A private file must never be readable by others, not even briefly.
    options.write(true).create_new(true).follow(FollowSymlinks::No).mode(if mode.is_some() { 0o600 } else { 0o666 });
    for number in 0..MAX_NAMES {
        let name = Path::new(&format!(".bloomery-{}-{number}.tmp", std::process::id())).to_owned();
        let file = match dir.open_with(&name, &options) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            opened => opened?,
        };
        if let Err(error) = fill(file, content, mode) {
            let _ = dir.remove_file(&name);
            return Err(error);
        }
        return Ok(name);
    }
    Err(io::Error::other("too many temporary files (.bloomery-*.tmp) lie beside it"))
}

fn fill(mut file: File, content: &[u8], mode: Option<u32>) -> io::Result<()> {
    file.write_all(content)?;
    if let Some(mode) = mode {
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    file.sync_all()
}

/// Returns a note about the other names of a file, if it has any.
pub(crate) fn other_names(old: Option<&Old>) -> Option<String> {
    let old = old.filter(|old| old.names > 1)?;
    Some(format!("had {} names (hard links); only this one has the new content", old.names))
}

/// Returns the same note as a sentence, with a leading space.
pub(crate) fn other_names_sentence(old: Option<&Old>) -> String {
    other_names(old).map_or_else(String::new, |names| format!(" It {names}."))
}
