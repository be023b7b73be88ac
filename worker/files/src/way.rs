//! The way to a place where a directory is hidden: step by step, each directory looked at once it is open, and links
//! followed by us. A kernel that walks the whole way at once does not say what it came by.

use crate::hidden::{self, Hidden};
use cap_fs_ext::DirExt;
use cap_std::fs::Dir;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

/// The most links on one way, as Linux has it.
const MAX_LINKS: usize = 40;

/// A way that is being gone.
struct Way<'a> {
    hidden: &'a Hidden,
    /// The open directories from the root to here; the root is never left.
    dirs: Vec<Dir>,
    /// The names that are still to go, the next one last.
    left: Vec<OsString>,
    links: usize,
}

/// The directory that a path below `root` is in, and its name there. Where the name is one of a link and `follows`, that
/// of what it leads to.
pub(crate) fn to_name(root: &Dir, hidden: &Hidden, path: &Path, follows: bool) -> io::Result<(Dir, PathBuf)> {
    let mut way = Way::new(root, hidden, path)?;
    while let Some(name) = way.left.pop() {
        if !way.left.is_empty() || name == ".." {
            way.enter(&name)?;
            continue;
        }
        match way.link(&name)? {
            Some(target) if follows => way.turn(&target)?,
            _ => return way.end(&name),
        }
    }
    way.end(OsStr::new("."))
}

/// Opens a directory.
pub(crate) fn to_dir(root: &Dir, hidden: &Hidden, path: &Path) -> io::Result<Dir> {
    let mut way = Way::new(root, hidden, path)?;
    while let Some(name) = way.left.pop() {
        way.enter(&name)?;
    }
    way.here()?.try_clone()
}

impl<'a> Way<'a> {
    fn new(root: &Dir, hidden: &'a Hidden, path: &Path) -> io::Result<Self> {
        let mut way = Self { hidden, dirs: vec![root.try_clone()?], left: Vec::new(), links: 0 };
        way.go(path)?;
        Ok(way)
    }

    fn here(&self) -> io::Result<&Dir> {
        self.dirs.last().ok_or_else(leads_out)
    }

    /// Takes up the names of a path.
    fn go(&mut self, path: &Path) -> io::Result<()> {
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

    /// Goes on where a link points.
    fn turn(&mut self, target: &Path) -> io::Result<()> {
        self.links += 1;
        if self.links > MAX_LINKS {
            return Err(io::Error::other("too many symbolic links are on the way"));
        }
        self.go(target)
    }

    /// Goes into the directory of a name, or on where the link of the name points.
    fn enter(&mut self, name: &OsStr) -> io::Result<()> {
        if name == ".." {
            self.dirs.pop();
            return self.here().map(drop);
        }
        let dir = match self.here()?.open_dir_nofollow(name) {
            Ok(dir) => dir,
            Err(error) => {
                let target = self.link(name)?.ok_or(error)?;
                return self.turn(&target);
            }
        };
        if self.hidden.is(&dir.dir_metadata()?) {
            return Err(hidden::refused());
        }
        self.dirs.push(dir);
        Ok(())
    }

    /// Where the link of a name points; none where there is no link of the name.
    fn link(&self, name: &OsStr) -> io::Result<Option<PathBuf>> {
        let here = self.here()?;
        match here.symlink_metadata(name) {
            Ok(metadata) if metadata.is_symlink() => here.read_link_contents(name).map(Some),
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

/// As `cap-std` says it.
fn leads_out() -> io::Error {
    io::Error::new(ErrorKind::PermissionDenied, "a path led outside of the resource")
}
