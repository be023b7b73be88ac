//! Resolves paths in a file system with hidden directories. This module opens one directory after the other, checks each open
//! directory, and follows links itself. It cannot leave this to the kernel, which does not report the directories on a path.

use crate::hidden_dirs::{self, HiddenDirs};
use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

/// The limit on symbolic links in one path. It is that of Linux.
const MAX_LINKS: usize = 40;

/// A path resolution in progress.
struct Resolver<'a> {
    hidden: &'a HiddenDirs,
    /// The open directories from the root to the current one.
    dirs: Vec<Dir>,
    /// The remaining names, in reverse order.
    remaining: Vec<OsString>,
    /// The number of links that were followed.
    links: usize,
}

/// Returns the directory of a path below `root`, and the last name of the path. If `follows`, a link at the end is replaced by
/// its target.
pub(crate) fn parent_and_name(
    root: &Dir,
    hidden: &HiddenDirs,
    path: &Path,
    follows: bool,
) -> io::Result<(Dir, PathBuf)> {
    let mut resolver = Resolver::new(root, hidden, path)?;
    while let Some(name) = resolver.remaining.pop() {
        if !resolver.remaining.is_empty() || name == ".." {
            resolver.enter(&name)?;
            continue;
        }
        match resolver.link_target(&name)? {
            Some(target) if follows => resolver.follow_link(&target)?,
            _ => return resolver.finish(&name),
        }
    }
    resolver.finish(OsStr::new("."))
}

/// Opens the directory at a path below `root`.
pub(crate) fn directory(root: &Dir, hidden: &HiddenDirs, path: &Path) -> io::Result<Dir> {
    let mut resolver = Resolver::new(root, hidden, path)?;
    while let Some(name) = resolver.remaining.pop() {
        resolver.enter(&name)?;
    }
    resolver.current()?.try_clone()
}

impl<'a> Resolver<'a> {
    fn new(root: &Dir, hidden: &'a HiddenDirs, path: &Path) -> io::Result<Self> {
        let mut resolver = Self { hidden, dirs: vec![root.try_clone()?], remaining: Vec::new(), links: 0 };
        resolver.push(path)?;
        Ok(resolver)
    }

    fn current(&self) -> io::Result<&Dir> {
        self.dirs.last().ok_or_else(leads_out)
    }

    /// Adds the names of a path to the remaining ones.
    fn push(&mut self, path: &Path) -> io::Result<()> {
        for part in path.components().rev() {
            match part {
                Component::Normal(name) => self.remaining.push(name.to_owned()),
                Component::ParentDir => self.remaining.push("..".into()),
                Component::CurDir => {}
                Component::RootDir | Component::Prefix(_) => return Err(leads_out()),
            }
        }
        Ok(())
    }

    /// Continues with the target of a link.
    fn follow_link(&mut self, target: &Path) -> io::Result<()> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(io::Error::other("the path has too many symbolic links"));
        }
        self.push(target)
    }

    /// Makes the directory with this name the current one, or follows the link with this name.
    fn enter(&mut self, name: &OsStr) -> io::Result<()> {
        if name == ".." {
            self.dirs.pop();
            // Above the root there is no current directory.
            return self.current().map(drop);
        }
        let dir = match self.current()?.open_dir_nofollow(name) {
            Ok(dir) => dir,
            Err(error) => {
                let target = self.link_target(name)?.ok_or(error)?;
                return self.follow_link(&target);
            }
        };
        if self.hidden.contains(&dir.dir_metadata()?) {
            return Err(hidden_dirs::access_error());
        }
        self.dirs.push(dir);
        Ok(())
    }

    /// Returns the target of a link; `None` if the name is not a link.
    fn link_target(&self, name: &OsStr) -> io::Result<Option<PathBuf>> {
        let current = self.current()?;
        match current.symlink_metadata(name) {
            Ok(metadata) if metadata.is_symlink() => current.read_link_contents(name).map(Some),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Returns the current directory with `name`.
    ///
    /// # Errors
    /// If `name` is a hidden directory.
    fn finish(mut self, name: &OsStr) -> io::Result<(Dir, PathBuf)> {
        let dir = self.dirs.pop().ok_or_else(leads_out)?;
        if dir.symlink_metadata(name).is_ok_and(|metadata| self.hidden.contains(&metadata)) {
            return Err(hidden_dirs::access_error());
        }
        Ok((dir, PathBuf::from(name)))
    }
}

/// Returns the error of a path that leads out of the resource. `cap-std` returns the same.
fn leads_out() -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, "a path led outside of the resource")
}
