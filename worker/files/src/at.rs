//! Operations on names below a root, which respect hidden directories. All access below a root goes through
//! this module.

use crate::hidden;
use crate::place::{Place, escaped, shown};
use crate::resolve;
use crate::root::Root;
use cap_fs_ext::{DirExt, FollowSymlinks, OpenOptionsFollowExt};
use cap_std::fs::{Dir, DirEntry, File, Metadata, OpenOptions, ReadDir};
use std::ffi::OsStr;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// A name in an open directory.
#[derive(Debug)]
pub(crate) struct At<'a> {
    root: &'a Root,
    /// The directory; `None` for the root itself.
    dir: Option<Dir>,
    name: PathBuf,
    follow: FollowSymlinks,
}

impl Root {
    /// Resolves a path to a name in its directory. `follow` applies to a link at its end.
    pub(crate) fn at(&self, path: &Path, follow: FollowSymlinks) -> io::Result<At<'_>> {
        let Some(hidden) = &self.hidden else {
            return Ok(At { root: self, dir: None, name: path.to_owned(), follow });
        };
        let (dir, name) = resolve::parent_and_name(&self.dir, hidden, path, follow == FollowSymlinks::Yes)?;
        Ok(At { root: self, dir: Some(dir), name, follow: FollowSymlinks::No })
    }

    /// Returns the metadata of a path, with links followed.
    pub(crate) fn metadata(&self, path: &Path) -> io::Result<Metadata> {
        self.at(path, FollowSymlinks::Yes)?.metadata()
    }

    /// Opens the directory of what is to be written; with `makes`, those that are missing on the way are made. No link is
    /// followed, and each directory is looked at once it is open: what version control keeps has no other name then.
    pub(crate) fn open_to_write(&self, place: &Place, makes: bool) -> io::Result<Dir> {
        let mut dir = self.dir.try_clone()?;
        for name in place.names() {
            dir = match enter(&dir, name) {
                Err(error) if makes && error.kind() == ErrorKind::NotFound => {
                    match dir.create_dir(name) {
                        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
                        made => made?,
                    }
                    enter(&dir, name)?
                }
                entered => entered?,
            };
            self.shows(&dir.dir_metadata()?)?;
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

    /// Returns whether an entry is a hidden directory, or its metadata cannot be read.
    pub(crate) fn hides(&self, entry: &DirEntry) -> bool {
        let is_it = |hidden: &hidden::Hidden| entry.metadata().map_or(true, |metadata| hidden.is(&metadata));
        self.hidden.as_deref().is_some_and(is_it)
    }

    /// Checks that this is not a hidden directory.
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

/// Opens a directory by its own name.
fn enter(dir: &Dir, name: &OsStr) -> io::Result<Dir> {
    dir.open_dir_nofollow(name).map_err(|error| match dir.symlink_metadata(name) {
        Ok(metadata) if metadata.is_symlink() => io::Error::other(format!(
            "{} is a symbolic link to {}, which is not written through: name the directory itself",
            shown(&name.to_string_lossy()),
            target(dir, Path::new(name))
        )),
        _ => error,
    })
}

/// Returns the target of a link, for messages.
pub(crate) fn target(dir: &Dir, name: &Path) -> String {
    dir.read_link_contents(name).map_or_else(|_| "?".to_owned(), |to| escaped(&to.to_string_lossy()))
}

impl At<'_> {
    /// Returns its metadata.
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

    /// Returns the target of the link.
    pub(crate) fn link(&self) -> io::Result<PathBuf> {
        self.dir().read_link_contents(&self.name)
    }

    fn dir(&self) -> &Dir {
        self.dir.as_ref().unwrap_or(&self.root.dir)
    }
}
