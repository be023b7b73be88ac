//! What is done with a name below a root, whether something is hidden there or not. Whoever opens anything below a root
//! does it by these.

use crate::hidden;
use crate::root::Root;
use crate::way;
use cap_fs_ext::{FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, DirEntry, File, Metadata, OpenOptions, ReadDir};
use std::io;
use std::path::{Path, PathBuf};

/// A name in an open directory.
#[derive(Debug)]
pub(crate) struct At<'a> {
    root: &'a Root,
    /// The directory, where it is not the root itself.
    dir: Option<Dir>,
    name: PathBuf,
    follow: FollowSymlinks,
}

impl Root {
    /// The name at a path, a link at its end followed or not.
    pub(crate) fn at(&self, path: &Path, follow: FollowSymlinks) -> io::Result<At<'_>> {
        let Some(hidden) = &self.hidden else {
            return Ok(At { root: self, dir: None, name: path.to_owned(), follow });
        };
        let (dir, name) = way::to_name(&self.dir, hidden, path, follow == FollowSymlinks::Yes)?;
        Ok(At { root: self, dir: Some(dir), name, follow: FollowSymlinks::No })
    }

    /// Looks at what a path leads to.
    pub(crate) fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.at(path, FollowSymlinks::Yes)?.metadata()
    }

    /// Opens a directory.
    pub(crate) fn open_dir(&self, path: &Path) -> io::Result<Dir> {
        match &self.hidden {
            None => self.dir.open_dir(path),
            Some(hidden) => way::to_dir(&self.dir, hidden, path),
        }
    }

    /// Makes a directory, and those that it is in.
    pub(crate) fn make_dirs(&self, path: &Path) -> io::Result<()> {
        match &self.hidden {
            None => self.dir.create_dir_all(path),
            Some(hidden) => way::make_dirs(&self.dir, hidden, path),
        }
    }

    /// The entries of a directory.
    pub(crate) fn entries(&self, path: &Path) -> io::Result<ReadDir> {
        match &self.hidden {
            None => self.dir.read_dir(path),
            Some(_) => self.open_dir(path)?.entries(),
        }
    }

    /// Whether an entry is a directory that is hidden, or cannot be told from one.
    pub(crate) fn hides(&self, entry: &DirEntry) -> bool {
        let is_it = |hidden: &hidden::Hidden| entry.metadata().map_or(true, |metadata| hidden.is(&metadata));
        self.hidden.as_deref().is_some_and(is_it)
    }

    /// Sees that something is not the hidden directory.
    ///
    /// # Errors
    /// If it is.
    pub(crate) fn shows(&self, metadata: &Metadata) -> io::Result<()> {
        match &self.hidden {
            Some(hidden) if hidden.is(metadata) => Err(hidden::refused()),
            _ => Ok(()),
        }
    }
}

impl At<'_> {
    /// Looks at it.
    pub(crate) fn metadata(&self) -> io::Result<Metadata> {
        match self.follow {
            FollowSymlinks::Yes => self.dir().metadata(&self.name),
            FollowSymlinks::No => self.dir().symlink_metadata(&self.name),
        }
    }

    /// Opens a file.
    pub(crate) fn open(&self, options: &mut OpenOptions) -> io::Result<File> {
        self.dir().open_with(&self.name, options.follow(self.follow))
    }

    /// Where a link points.
    pub(crate) fn link(&self) -> io::Result<PathBuf> {
        self.dir().read_link_contents(&self.name)
    }

    fn dir(&self) -> &Dir {
        self.dir.as_ref().unwrap_or(&self.root.dir)
    }
}
