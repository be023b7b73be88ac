//! Replaces the content of a file atomically: readers see the old or the new content.
//!
//! The new content is written to a temporary file in the same directory, which is then renamed. A link that another process puts in
//! place of the file is replaced, not followed. Hard links to the old file keep the old content.

use crate::Error;
use crate::marks::Marks;
use crate::resolved_path;
use crate::resource_path::ResourcePath;
use crate::root::{Root, kind};
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt, OpenOptionsSyncExt};
use cap_std::fs::{Dir, File, Metadata, MetadataExt, OpenOptions, OpenOptionsExt, Permissions, PermissionsExt};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// The largest file that can be changed, in bytes. The old and the new content are held in memory.
pub(crate) const MAX_BYTES: u64 = 2 * 1024 * 1024;

/// The limit on the names that are tried for a temporary file. Temporary files of killed workers may have the first ones.
const MAX_TEMPORARY_NAMES: u32 = 1000;

/// The identity and state of a file, which show changes by other processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Identity {
    dev: u64,
    ino: u64,
    size: u64,
    /// The modification time, in seconds and nanoseconds.
    modified: (i64, i64),
}

/// A file to write.
#[derive(Debug)]
pub(crate) struct Target {
    parent: Dir,
    name: PathBuf,
    /// The path, formatted for messages.
    label: String,
    /// Whether to write into the file instead of replacing it. This is so if the resource is this one file: the file may be a
    /// mount point, which a rename cannot replace.
    in_place: bool,
    /// The marks of secrets. A content is refused if one of them would overwrite its secret.
    marks: Marks,
    /// The existing file, if there is one.
    pub(crate) existing: Option<ExistingFile>,
}

/// The file before the change.
#[derive(Debug)]
pub(crate) struct ExistingFile {
    identity: Identity,
    mode: u32,
    /// The number of hard links.
    links: u64,
}

/// A staged change of a file. Dropping it removes the temporary file.
#[derive(Debug)]
pub(crate) struct Staged {
    target: Target,
    change: Change,
}

#[derive(Debug)]
enum Change {
    /// Renames this temporary file.
    Rename(PathBuf),
    /// Writes this content into the file.
    WriteInPlace(Vec<u8>),
    /// Removes the file.
    Remove,
}

impl Target {
    /// Finds the file at a path, which may not exist yet. Creates missing directories if `creates_directories`.
    ///
    /// # Errors
    /// A message for the model, if the path is not that of a file that can be written: in version control, through a link, or
    /// not a regular file.
    pub(crate) fn find(root: &Root, path: &ResourcePath, creates_directories: bool) -> Result<Self, Error> {
        let label = path.describe();
        if path.is_in_version_control() || root.is_in_version_control {
            return Err(format!(
                "{label} is in a directory of version control, where files cannot be changed. Nothing was changed."
            )
            .into());
        }
        let Some((parent, name)) = path.split() else {
            return Err("path is that of the resource itself. Set path to a file. Nothing was changed.".into());
        };
        let dir = root.open_dir_to_write(&parent, creates_directories).map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => {
                let parent = parent.describe();
                format!(
                    "The directory {parent} does not exist. Nothing was changed. Set createDirectories to create it."
                )
                .into()
            }
            _ => Error::io(if creates_directories { "created" } else { "opened" }, &parent.describe(), &error),
        })?;
        let existing = match dir.symlink_metadata(name) {
            Ok(metadata) if metadata.is_file() => Some(ExistingFile::from_metadata(&metadata)),
            Ok(metadata) if metadata.is_symlink() => {
                return Err(format!(
                    "{label} is a symbolic link to {}, and no file is written through a link. Nothing was changed. Use the path of \
                     the file itself.",
                    resolved_path::link_target(&dir, name)
                ).into());
            }
            Ok(metadata) => {
                root.check_not_hidden(&metadata).map_err(|error| Error::io("written", &label, &error))?;
                return Err(format!(
                    "{label} is {}, and only regular files can be written. Nothing was changed.",
                    kind(&metadata)
                )
                .into());
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(Error::io("inspected", &label, &error)),
        };
        let in_place = root.file.is_some();
        if let Some(file) = existing.as_ref().filter(|file| in_place && file.links > 1) {
            return Err(format!(
                "{label} has {} names (hard links). The resource is this one file, so a change would apply to all of the names. \
                 Nothing was changed.",
                file.links
            )
            .into());
        }
        Ok(Self { parent: dir, name: name.to_owned(), label, in_place, marks: root.secrets.marks.clone(), existing })
    }

    /// Returns the content of the file; `None` if the file does not exist.
    ///
    /// # Errors
    /// A message for the model.
    pub(crate) fn content(&self) -> Result<Option<Vec<u8>>, Error> {
        let Some(existing) = &self.existing else { return Ok(None) };
        let size = existing.identity.size;
        if size > MAX_BYTES {
            return Err(format!(
                "{} has {size} bytes, more than the limit of {MAX_BYTES} for a change. Nothing was changed.",
                self.label
            )
            .into());
        }
        let read = || {
            let file = self.open(OpenOptions::new().read(true))?;
            if Identity::from_metadata(&file.metadata()?) != existing.identity {
                return Err(io::Error::other("another process is changing it"));
            }
            let mut content = Vec::new();
            file.take(MAX_BYTES + 1).read_to_end(&mut content)?;
            Ok(content)
        };
        read().map(Some).map_err(|error: io::Error| Error::io("read", &self.label, &error))
    }

    /// Returns the device and inode number of the existing file. Two names can have the same: hard links, or names that differ
    /// only in case.
    pub(crate) fn identity(&self) -> Option<(u64, u64)> {
        self.existing.as_ref().map(|file| (file.identity.dev, file.identity.ino))
    }

    /// Returns the path, formatted for messages.
    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    fn open(&self, options: &mut OpenOptions) -> io::Result<File> {
        self.parent.open_with(&self.name, options.follow(FollowSymlinks::No).nonblock(true))
    }

    /// Stages a new content: writes it durably to a temporary file, which [`Staged::commit`] renames.
    ///
    /// # Errors
    /// If the content cannot be written, or would overwrite a secret with its mark. Nothing has changed.
    pub(crate) fn stage(self, content: &[u8]) -> Result<Staged, Error> {
        if self.marks.any_in(content) {
            self.marks.check_none_added(&self.label, content, &self.content()?.unwrap_or_default())?;
        }
        if self.in_place {
            return Ok(Staged { target: self, change: Change::WriteInPlace(content.to_owned()) });
        }
        let mode = self.existing.as_ref().map(|file| file.mode);
        match write_temporary(&self.parent, content, mode) {
            Ok(name) => Ok(Staged { target: self, change: Change::Rename(name) }),
            Err(error) => Err(Error::io("written", &self.label, &error)),
        }
    }

    /// Stages the removal of the file.
    ///
    /// # Errors
    /// A message for the model, if the resource is this one file.
    pub(crate) fn stage_removal(self) -> Result<Staged, Error> {
        if self.in_place {
            return Err(format!(
                "{} is the resource itself, which cannot be removed. Nothing was changed.",
                self.label
            )
            .into());
        }
        Ok(Staged { target: self, change: Change::Remove })
    }
}

impl Staged {
    /// Makes the staged change, durably.
    ///
    /// # Errors
    /// A message for the model. The file has not changed.
    pub(crate) fn commit(mut self) -> Result<(), Error> {
        self.try_commit().map_err(|error| Error::io("written", &self.target.label, &error))
    }

    fn try_commit(&mut self) -> io::Result<()> {
        let Target { parent, name, existing, .. } = &self.target;
        let current = match parent.symlink_metadata(name) {
            Ok(metadata) => Some(Identity::from_metadata(&metadata)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        if current != existing.as_ref().map(|file| file.identity) {
            return Err(changed_by_another());
        }
        match &self.change {
            Change::WriteInPlace(content) => return self.write_in_place(content),
            Change::Rename(temporary) => parent.rename(temporary, parent, name)?,
            Change::Remove => parent.remove_file(name)?,
        }
        // The temporary file has its final name, so dropping this must not remove it.
        self.change = Change::Remove;
        // The file has changed, so a failed sync is no error. A power failure may undo the change.
        let _ = self.target.parent.open(".").and_then(|dir| dir.sync_all());
        Ok(())
    }

    fn write_in_place(&self, content: &[u8]) -> io::Result<()> {
        let mut file = self.target.open(OpenOptions::new().write(true))?;
        let metadata = file.metadata()?;
        if !metadata.is_file()
            || self.target.existing.as_ref().is_none_or(|file| file.identity != Identity::from_metadata(&metadata))
        {
            return Err(changed_by_another());
        }
        file.write_all(content)?;
        file.set_len(content.len() as u64)?;
        file.sync_all()
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if let Change::Rename(name) = &self.change {
            // If the removal fails, the name `.bloomery-*.tmp` shows people that the file can be removed.
            let _ = self.target.parent.remove_file(name);
        }
    }
}

impl ExistingFile {
    /// Returns the size, in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.identity.size
    }

    fn from_metadata(metadata: &Metadata) -> Self {
        // The new file may have another owner or group, so it does not get the setuid and setgid bits.
        Self { identity: Identity::from_metadata(metadata), mode: metadata.mode() & 0o777, links: metadata.nlink() }
    }
}

impl Identity {
    fn from_metadata(metadata: &Metadata) -> Self {
        Self {
            dev: metadata.dev(),
            ino: metadata.ino(),
            size: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        }
    }
}

fn changed_by_another() -> io::Error {
    io::Error::other("another process has changed it")
}

/// Writes a content durably to a new file in the directory, and returns the name of the file.
fn write_temporary(dir: &Dir, content: &[u8], mode: Option<u32>) -> io::Result<PathBuf> {
    let mut options = OpenOptions::new();
    // The content of a private file must never be readable by others, not even briefly.
    options.write(true).create_new(true).follow(FollowSymlinks::No).mode(if mode.is_some() { 0o600 } else { 0o666 });
    for number in 0..MAX_TEMPORARY_NAMES {
        let name = Path::new(&format!(".bloomery-{}-{number}.tmp", std::process::id())).to_owned();
        let file = match dir.open_with(&name, &options) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
            opened => opened?,
        };
        if let Err(error) = write_durably(file, content, mode) {
            let _ = dir.remove_file(&name);
            return Err(error);
        }
        return Ok(name);
    }
    Err(io::Error::other("its directory contains too many temporary files (.bloomery-*.tmp)"))
}

fn write_durably(mut file: File, content: &[u8], mode: Option<u32>) -> io::Result<()> {
    file.write_all(content)?;
    if let Some(mode) = mode {
        file.set_permissions(Permissions::from_mode(mode))?;
    }
    file.sync_all()
}

/// Returns a note about the other hard links of a replaced file, if there are any.
pub(crate) fn hard_links_note(existing: Option<&ExistingFile>) -> Option<String> {
    let file = existing.filter(|file| file.links > 1)?;
    Some(format!("had {} names (hard links); only this one has the new content", file.links))
}

/// Returns the note about hard links as a sentence with a leading space; empty if there is no note.
pub(crate) fn hard_links_sentence(existing: Option<&ExistingFile>) -> String {
    hard_links_note(existing).map_or_else(String::new, |note| format!(" The file {note}."))
}
