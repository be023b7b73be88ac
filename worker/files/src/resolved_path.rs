//! Resolves paths below a root and opens files and directories there, except hidden ones. All access below a root goes through this
//! module.

use crate::hidden_dirs;
use crate::resolve;
use crate::resource_path::{ResourcePath, escape_controls, quote};
use crate::root::Root;
use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, DirEntry, File, Metadata, OpenOptions, ReadDir};
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A path resolved to a name in an open directory.
#[derive(Debug)]
pub(crate) struct ResolvedPath<'a> {
    root: &'a Root,
    /// The open directory; `None` for the root's directory.
    dir: Option<Dir>,
    /// The path below the directory: its last name, or the whole path if `dir` is `None`.
    name: PathBuf,
    follow: FollowSymlinks,
}

impl Root {
    /// Resolves a path to a name in its directory. `follow` applies to a link at the end of the path.
    pub(crate) fn resolve(&self, path: &Path, follow: FollowSymlinks) -> io::Result<ResolvedPath<'_>> {
        let Some(hidden) = &self.hidden else {
            // `cap-std` resolves the whole path when it is used.
            return Ok(ResolvedPath { root: self, dir: None, name: path.to_owned(), follow });
        };
        let (dir, name) = resolve::parent_and_name(&self.dir, hidden, path, follow == FollowSymlinks::Yes)?;
        Ok(ResolvedPath { root: self, dir: Some(dir), name, follow: FollowSymlinks::No })
    }

    /// Returns the metadata of a path, with links followed.
    pub(crate) fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.resolve(path, FollowSymlinks::Yes)?.metadata()
    }

    /// Opens a directory for writing in it. Creates missing directories if `creates`. Follows no link, so a directory of
    /// version control cannot be reached by another name. Checks each directory once it is open.
    pub(crate) fn open_dir_to_write(&self, path: &ResourcePath, creates: bool) -> io::Result<Dir> {
        let mut dir = self.dir.try_clone()?;
        for name in path.names() {
            dir = match open_dir(&dir, name) {
                Err(error) if creates && error.kind() == ErrorKind::NotFound => {
                    match dir.create_dir(name) {
                        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                        result => result?,
                    }
                    open_dir(&dir, name)?
                }
                opened => opened?,
            };
            self.check_not_hidden(&dir.dir_metadata()?)?;
        }
        Ok(dir)
    }

    /// Returns the entries of a directory.
    pub(crate) fn entries(&self, path: &Path) -> io::Result<ReadDir> {
        match &self.hidden {
            None => self.dir.read_dir(path),
            Some(hidden) => resolve::directory(&self.dir, hidden, path)?.entries(),
        }
    }

    /// Returns whether an entry is a hidden directory, or may be one because its metadata cannot be read.
    pub(crate) fn is_hidden(&self, entry: &DirEntry) -> bool {
        let Some(hidden) = &self.hidden else { return false };
        entry.metadata().map_or(true, |metadata| hidden.contains(&metadata))
    }

    /// Checks that the metadata is not that of a hidden directory.
    ///
    /// # Errors
    /// If the directory is hidden.
    pub(crate) fn check_not_hidden(&self, metadata: &Metadata) -> io::Result<()> {
        match &self.hidden {
            Some(hidden) if hidden.contains(metadata) => Err(hidden_dirs::access_error()),
            _ => Ok(()),
        }
    }
}

/// Opens a directory, without following a link.
fn open_dir(dir: &Dir, name: &OsStr) -> io::Result<Dir> {
    dir.open_dir_nofollow(name).map_err(|error| match dir.symlink_metadata(name) {
        Ok(metadata) if metadata.is_symlink() => io::Error::other(format!(
            "{} is a symbolic link to {}, and no file is written through a link: use the path of the directory itself",
            quote(&name.to_string_lossy()),
            link_target(dir, Path::new(name))
        )),
        _ => error,
    })
}

/// Returns the target of a link, for messages.
pub(crate) fn link_target(dir: &Dir, name: &Path) -> String {
    dir.read_link_contents(name).map_or_else(|_| "?".to_owned(), |to| escape_controls(&to.to_string_lossy()))
}

impl ResolvedPath<'_> {
    /// Returns the metadata.
    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        match self.follow {
            FollowSymlinks::Yes => self.dir().metadata(&self.name),
            FollowSymlinks::No => self.dir().symlink_metadata(&self.name),
        }
    }

    /// Opens the file.
    pub(crate) fn open(&self, options: &mut OpenOptions) -> io::Result<File> {
        self.dir().open_with(&self.name, options.follow(self.follow))
    }

    /// Returns the target of the link.
    pub(crate) fn link_target(&self) -> io::Result<PathBuf> {
        self.dir().read_link_contents(&self.name)
    }

    fn dir(&self) -> &Dir {
        self.dir.as_ref().unwrap_or(&self.root.dir)
    }
}
