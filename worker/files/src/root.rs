//! A bound file system as a capability: everything is opened below one handle, and checked after it is open.

use crate::Error;
use crate::hidden::{self, Hidden};
use crate::place::{self, Place};
use crate::secrets::Secrets;
use cap_fs_ext::{FollowSymlinks, OpenOptionsSyncExt};
use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, FileTypeExt, Metadata, OpenOptions};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A file system that a Job binds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The name of the resource.
    pub name: String,
    /// The path of the directory or file.
    pub path: PathBuf,
    /// Whether it is read-only.
    pub read_only: bool,
}

/// An open binding.
#[derive(Debug)]
pub(crate) struct Root {
    /// The directory, or the one that the file is in. What is below it is opened by the functions of `at`, or what is hidden
    /// would not be.
    pub(crate) dir: Dir,
    /// The name of the file, where the resource is one. Nothing beside it is reached.
    pub(crate) file: Option<OsString>,
    /// The hidden directories.
    pub(crate) hidden: Option<Arc<Hidden>>,
    /// Whether all of it is within a directory of version control.
    pub(crate) is_version_controls: bool,
    /// The secrets to redact, and their marks.
    pub(crate) secrets: Secrets,
    /// The path of the binding. Calls may begin their paths with it, because the persona may mention it.
    bound: String,
}

/// An open regular file, and its metadata after it was opened.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: File,
    pub(crate) metadata: Metadata,
}

impl Root {
    /// Opens a binding.
    ///
    /// # Errors
    /// A message for the model.
    pub(crate) fn open(binding: &Binding, hidden: Option<&Arc<Hidden>>) -> Result<Self, Error> {
        Self::try_open(&binding.path, hidden)
            .map_err(|error| Error::io("opened", &format!("resource `{}`", binding.name), &error))
    }

    fn try_open(bound: &Path, hidden: Option<&Arc<Hidden>>) -> io::Result<Self> {
        // Links in the path of the binding are trusted; links below it are not.
        let path = bound.canonicalize()?;
        if let Some(hidden) = hidden
            && hidden.holds(&path)?
        {
            return Err(hidden::refused());
        }
        let bound = bound.to_string_lossy().trim_end_matches('/').to_owned();
        let (dir, file) = if path.is_dir() {
            (path.as_path(), None)
        } else {
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                return Err(io::Error::from(io::ErrorKind::NotFound));
            };
            (parent, Some(name.to_owned()))
        };
        let dir = Dir::open_ambient_dir(dir, ambient_authority())?;
        let is_version_controls = place::is_within_version_control(&path);
        let root = Self { dir, file, hidden: hidden.cloned(), is_version_controls, secrets: Secrets::default(), bound };
        // The directory may have been replaced since the first check.
        root.shows(&root.dir.dir_metadata()?)?;
        Ok(root)
    }

    /// The place that a call means; its path may begin with where the resource is bound. Of a resource that is a file: the file, by its name or by none.
    ///
    /// # Errors
    /// A message for the model.
    pub(crate) fn place(&self, path: Option<&str>) -> Result<Place, Error> {
        let path = path.unwrap_or_default();
        let below = path.strip_prefix(&self.bound).filter(|rest| rest.is_empty() || rest.starts_with('/'));
        let place = Place::parse(below.map_or(path, |rest| rest.trim_start_matches('/')))?;
        let Some(name) = &self.file else { return Ok(place) };
        let name = name.to_string_lossy();
        if place.is_root() || place.path() == Path::new(&*name) {
            return Place::parse(&name);
        }
        Err(format!("The resource is one file, {}; there is no {} in it.", place::shown(&name), place.shown()).into())
    }

    /// Opens a regular file to be read, links within the resource followed.
    ///
    /// # Errors
    /// A message for the model.
    pub(crate) fn open_file(&self, place: &Place) -> Result<Opened, Error> {
        self.open_regular(place, FollowSymlinks::Yes)
            .map_err(|error| Error::io("read", &place.shown(), &error))?
            .map_err(|kind| format!("{} is {kind}, no file that can be read.", place.shown()).into())
    }

    /// Opens a place if it is a regular file, or else returns its type.
    ///
    /// Nothing that is opened is waited for, and a device is not even opened: both would be effects. What matters is
    /// what is open, since the name may mean something else by now.
    pub(crate) fn open_regular(
        &self,
        place: &Place,
        follow: FollowSymlinks,
    ) -> io::Result<Result<Opened, &'static str>> {
        let at = self.at(place.path(), follow)?;
        let found = at.metadata()?;
        if !found.is_file() {
            return Ok(Err(kind(&found)));
        }
        let mut options = OpenOptions::new();
        options.read(true).nonblock(true);
        let file = at.open(&mut options)?;
        let metadata = file.metadata()?;
        Ok(if metadata.is_file() { Ok(Opened { file, metadata }) } else { Err(kind(&metadata)) })
    }
}

/// Returns the type of a file that is not a regular one.
pub(crate) fn kind(metadata: &Metadata) -> &'static str {
    let kind = metadata.file_type();
    if kind.is_dir() {
        "a directory"
    } else if kind.is_symlink() {
        "a symbolic link"
    } else if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else {
        "a device"
    }
}
