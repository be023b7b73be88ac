//! Path resolution where directories are hidden: step by step, with each directory checked after it is open, and links
//! followed here. The kernel's own resolution does not report the directories that it passes.

use crate::hidden::{self, Hidden};
use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

/// The limit on links in one path, as in Linux.
const MAX_LINKS: usize = 40;

/// A path resolution in progress.
struct Resolver<'a> {
    hidden: &'a Hidden,
    /// The open directories from the root to the current one.
    dirs: Vec<Dir>,
    /// The remaining names, the next one last.
    left: Vec<OsString>,
    links: usize,
}

/// Returns the directory of a path below `root`, and the name there. With `follows`, a link at the end is replaced by
/// its target.
pub(crate) fn parent_and_name(root: &Dir, hidden: &Hidden, path: &Path, follows: bool) -> io::Result<(Dir, PathBuf)> {
    let mut resolver = Resolver::new(root, hidden, path)?;
    while let Some(name) = resolver.left.pop() {
        if !resolver.left.is_empty() || name == ".." {
            resolver.enter(&name)?;
            continue;
        }
        match resolver.link(&name)? {
            Some(target) if follows => resolver.follow_link(&target)?,
            _ => return resolver.end(&name),
        }
    }
    resolver.end(OsStr::new("."))
}

/// Opens a directory.
pub(crate) fn directory(root: &Dir, hidden: &Hidden, path: &Path) -> io::Result<Dir> {
    let mut resolver = Resolver::new(root, hidden, path)?;
    while let Some(name) = resolver.left.pop() {
        resolver.enter(&name)?;
    }
    resolver.current()?.try_clone()
}

impl<'a> Resolver<'a> {
    fn new(root: &Dir, hidden: &'a Hidden, path: &Path) -> io::Result<Self> {
        let mut resolver = Self { hidden, dirs: vec![root.try_clone()?], left: Vec::new(), links: 0 };
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
                Component::Normal(name) => self.left.push(name.to_owned()),
                Component::ParentDir => self.left.push("..".into()),
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
            return Err(io::Error::other("too many symbolic links are on the path"));
        }
        self.push(target)
    }

    /// Enters the directory of a name, or follows the link of that name.
    fn enter(&mut self, name: &OsStr) -> io::Result<()> {
        if name == ".." {
            self.dirs.pop();
            return self.current().map(drop);
        }
        let dir = match self.current()?.open_dir_nofollow(name) {
            Ok(dir) => dir,
            Err(error) => {
                let target = self.link(name)?.ok_or(error)?;
                return self.follow_link(&target);
            }
        };
        if self.hidden.is(&dir.dir_metadata()?) {
            return Err(hidden::refused());
        }
        self.dirs.push(dir);
        Ok(())
    }

    /// Returns the target of a link; `None` if the name is not a link.
    fn link(&self, name: &OsStr) -> io::Result<Option<PathBuf>> {
        let current = self.current()?;
        match current.symlink_metadata(name) {
            Ok(metadata) if metadata.is_symlink() => current.read_link_contents(name).map(Some),
            Ok(_) => Ok(None),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn end(mut self, name: &OsStr) -> io::Result<(Dir, PathBuf)> {
        let dir = self.dirs.pop().ok_or_else(leads_out)?;
        if dir.symlink_metadata(name).is_ok_and(|metadata| self.hidden.is(&metadata)) {
            return Err(hidden::refused());
        }
        Ok((dir, PathBuf::from(name)))
    }
}

/// Returns the same error as `cap-std`.
fn leads_out() -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, "a path led outside of the resource")
}
