//! Directories of a repository: no symbolic link in them is followed.

use crate::source;
use bloomery_redact::plain_file;
use bloomery_skills::repository::{ReadFault, SkillDirectory};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The deepest nesting of directories.
const MAX_DEPTH: usize = 16;

/// The kind of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A directory.
    Directory,
    /// A regular file.
    File,
}

/// The entries of a directory, and the faults of those that cannot be used.
#[derive(Debug, Default)]
pub struct Listing {
    /// The names of the entries, sorted.
    pub entries: Vec<(String, Kind)>,
    /// The faults: the name of the entry, and the rest of a sentence that begins with it.
    pub faults: Vec<(String, String)>,
}

/// Lists a directory. Entries whose name begins with a dot are left out.
pub fn list(dir: &Path) -> io::Result<Listing> {
    let mut listing = Listing::default();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str() else {
            listing.faults.push((name.to_string_lossy().into_owned(), "has a name that is not UTF-8".to_owned()));
            continue;
        };
        if name.starts_with('.') {
            continue;
        }
        // This does not follow a symbolic link.
        let kind = entry.file_type()?;
        if kind.is_dir() {
            listing.entries.push((name.to_owned(), Kind::Directory));
        } else if kind.is_file() {
            listing.entries.push((name.to_owned(), Kind::File));
        } else {
            let what = if kind.is_symlink() { "a symbolic link, which is not followed" } else { "not a regular file" };
            listing.faults.push((name.to_owned(), format!("is {what}: remove it from the repository")));
        }
    }
    listing.entries.sort();
    listing.faults.sort();
    Ok(listing)
}

/// The files below a directory.
#[derive(Debug)]
pub struct FileTree {
    /// The directory.
    pub dir: PathBuf,
    /// The paths of the files in it, sorted.
    pub files: Vec<String>,
}

impl FileTree {
    /// Lists all files below a directory. Returns also the faults of entries that cannot be used, by their paths.
    pub fn open(dir: &Path) -> io::Result<(Self, Vec<(String, String)>)> {
        let mut tree = Self { dir: dir.to_owned(), files: Vec::new() };
        let mut faults = Vec::new();
        tree.collect("", 0, &mut faults)?;
        tree.files.sort();
        Ok((tree, faults))
    }

    fn collect(&mut self, below: &str, depth: usize, faults: &mut Vec<(String, String)>) -> io::Result<()> {
        if depth > MAX_DEPTH {
            faults.push((below.to_owned(), format!("is nested deeper than {MAX_DEPTH} directories")));
            return Ok(());
        }
        let listing = list(&self.dir.join(below))?;
        faults.extend(listing.faults.into_iter().map(|(name, fault)| (join(below, &name), fault)));
        for (name, kind) in listing.entries {
            let path = join(below, &name);
            match kind {
                Kind::File => self.files.push(path),
                Kind::Directory => self.collect(&path, depth + 1, faults)?,
            }
        }
        Ok(())
    }
}

impl SkillDirectory for FileTree {
    fn files(&self) -> &[String] {
        &self.files
    }

    fn read(&self, file: &str, max_bytes: usize) -> Result<Vec<u8>, ReadFault> {
        let unreadable = |error: io::Error| ReadFault::Other(format!("cannot be read: {error}"));
        let max_bytes = u64::try_from(max_bytes).unwrap_or(u64::MAX);
        let opened = source::open(&self.dir.join(file)).map_err(unreadable)?;
        if opened.metadata().map_err(unreadable)?.len() > max_bytes {
            return Err(ReadFault::TooLarge);
        }
        plain_file::read_bounded(opened, max_bytes).map_err(unreadable)
    }
}

/// Joins a path and a name with `/`.
pub fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}/{name}") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn a_directory_is_listed_in_order_and_links_are_faults() {
        let dir = tempfile::tempdir().unwrap();
        for file in ["b.txt", "a/c.txt", ".hidden"] {
            fs::create_dir_all(dir.path().join(file).parent().unwrap()).unwrap();
            fs::write(dir.path().join(file), "text").unwrap();
        }
        symlink("b.txt", dir.path().join("a/file-link")).unwrap();
        symlink("/", dir.path().join("dir-link")).unwrap();
        let (tree, faults) = FileTree::open(dir.path()).unwrap();
        assert_eq!(tree.files, ["a/c.txt", "b.txt"]);
        let names: Vec<&str> = faults.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["dir-link", "a/file-link"]);
        assert!(faults.iter().all(|(_, fault)| fault.starts_with("is a symbolic link")), "{faults:?}");
    }

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a"), "text").unwrap();
        let (tree, _) = FileTree::open(dir.path()).unwrap();
        assert_eq!(tree.read("a", 4), Ok(b"text".to_vec()));
        assert_eq!(tree.read("a", 3), Err(ReadFault::TooLarge));
        assert!(matches!(tree.read("b", 4), Err(ReadFault::Other(_))));
    }

    #[test]
    fn deep_directories_are_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("d/".repeat(MAX_DEPTH + 5))).unwrap();
        let (tree, faults) = FileTree::open(dir.path()).unwrap();
        assert_eq!((tree.files.len(), faults.len()), (0, 1));
    }
}
