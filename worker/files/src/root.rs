//! An open binding. All files and directories of a binding are opened below one directory handle, and checked once they are open.

use crate::Error;
use crate::hidden_dirs::{self, HiddenDirs};
use crate::resource_path::{self, ResourcePath};
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
    /// Whether the binding is read-only.
    pub read_only: bool,
}

/// An open binding.
#[derive(Debug)]
pub(crate) struct Root {
    /// The bound directory, or the parent of the bound file. Paths below it must be opened with the functions of
    /// `resolved_path`, which check for hidden directories.
    pub(crate) dir: Dir,
    /// The name of the file, if the resource is one file. Calls cannot reach other files then.
    pub(crate) file: Option<OsString>,
    /// The hidden directories.
    pub(crate) hidden: Option<Arc<HiddenDirs>>,
    /// Whether the binding is within a directory of version control.
    pub(crate) is_in_version_control: bool,
    /// The secrets to redact, and their marks.
    pub(crate) secrets: Secrets,
    /// The path of the binding. The persona may mention it, so paths in calls may begin with it.
    binding_path: String,
}

/// An open regular file, and the metadata of the open file.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) file: File,
    pub(crate) metadata: Metadata,
}

/// The result of opening a path for reading.
pub(crate) enum OpenedPath {
    /// A regular file, which is open.
    Regular(Opened),
    /// Another type of file, which was not read. Contains the type, with an article.
    Other(&'static str),
}

impl Root {
    /// Opens a binding.
    ///
    /// # Errors
    /// A message for the model.
    pub(crate) fn open(binding: &Binding, hidden: Option<&Arc<HiddenDirs>>) -> Result<Self, Error> {
        Self::try_open(&binding.path, hidden)
            .map_err(|error| Error::io("opened", &format!("The resource `{}`", binding.name), &error))
    }

    fn try_open(binding_path: &Path, hidden: Option<&Arc<HiddenDirs>>) -> io::Result<Self> {
        // Links in the path of the binding are trusted; links below it are not.
        let path = binding_path.canonicalize()?;
        if let Some(hidden) = hidden
            && hidden.covers(&path)?
        {
            return Err(hidden_dirs::access_error());
        }
        let binding_path = binding_path.to_string_lossy().into_owned();
        let (dir, file) = if path.is_dir() {
            (path.as_path(), None)
        } else {
            let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
                return Err(io::Error::from(io::ErrorKind::NotFound));
            };
            (parent, Some(name.to_owned()))
        };
        let dir = Dir::open_ambient_dir(dir, ambient_authority())?;
        let is_in_version_control = resource_path::leads_into_version_control(&path);
        let (hidden, secrets) = (hidden.cloned(), Secrets::default());
        let root = Self { dir, file, hidden, is_in_version_control, secrets, binding_path };
        // The directory may have been replaced since the first check.
        root.check_not_hidden(&root.dir.dir_metadata()?)?;
        Ok(root)
    }

    /// Parses the path in a call. The path may begin with the path of the binding. In a resource that is one file, only that file
    /// has a path: its name, or none.
    ///
    /// # Errors
    /// A message for the model.
    pub(crate) fn resource_path(&self, path: Option<&str>) -> Result<ResourcePath, Error> {
        let parsed = path_below(&self.binding_path, path)?;
        let Some(name) = &self.file else { return Ok(parsed) };
        let name = name.to_string_lossy();
        if parsed.is_root() || parsed.as_path() == Path::new(&*name) {
            return ResourcePath::parse(&name);
        }
        let name = resource_path::quote(&name);
        Err(format!("{} does not exist: the resource is the one file {name}.", parsed.describe()).into())
    }

    /// Opens a regular file for reading. Follows links within the resource.
    ///
    /// # Errors
    /// A message for the model.
    pub(crate) fn open_file(&self, path: &ResourcePath) -> Result<Opened, Error> {
        match self.open_regular(path, FollowSymlinks::Yes) {
            Ok(OpenedPath::Regular(opened)) => Ok(opened),
            Ok(OpenedPath::Other(kind)) => {
                Err(format!("{} is {kind}, and only regular files can be read.", path.describe()).into())
            }
            Err(error) => Err(Error::io("read", &path.describe(), &error)),
        }
    }

    /// Opens a regular file for reading, or returns the type of another file.
    ///
    /// Does not open devices, and does not wait for a named pipe, because both can have effects. The type is checked again once
    /// the file is open, because the name may mean another file by then.
    pub(crate) fn open_regular(&self, path: &ResourcePath, follow: FollowSymlinks) -> io::Result<OpenedPath> {
        let resolved = self.resolve(path.as_path(), follow)?;
        let path_metadata = resolved.metadata()?;
        if !path_metadata.is_file() {
            return Ok(OpenedPath::Other(kind(&path_metadata)));
        }
        let mut options = OpenOptions::new();
        options.read(true).nonblock(true);
        let file = resolved.open(&mut options)?;
        let metadata = file.metadata()?;
        Ok(if metadata.is_file() {
            OpenedPath::Regular(Opened { file, metadata })
        } else {
            OpenedPath::Other(kind(&metadata))
        })
    }
}

/// Parses the path in a call, which may begin with the path of the binding.
///
/// # Errors
/// A message for the model.
pub(crate) fn path_below(binding: &str, path: Option<&str>) -> Result<ResourcePath, Error> {
    let path = path.unwrap_or_default();
    let below = path.strip_prefix(binding.trim_end_matches('/'));
    let below = below.filter(|rest| rest.is_empty() || rest.starts_with('/'));
    ResourcePath::parse(below.map_or(path, |rest| rest.trim_start_matches('/')))
}

/// Returns the type of a file that is not a regular file, with an article.
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
