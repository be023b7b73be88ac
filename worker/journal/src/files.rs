//! The file operations that the log needs, as a trait.
//!
//! [`Disk`] implements it for the local file system. Crash tests use an implementation that loses what was not synced. All
//! operations block: nothing else may happen before an event is durable.

use bloomery_redact::plain_file;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::SystemTime;

/// File operations with the guarantees that the log needs.
pub trait Files {
    /// Creates a directory, unless it exists. The directory is durable once its parent is synced.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;

    /// Makes the entries of a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Writes a new file, and makes its content durable. Fails if the name exists. The name is durable once the directory is
    /// synced.
    fn create(&self, file: &Path, content: &[u8]) -> io::Result<()>;

    /// Writes a new file that a crash may lose. Fails if the name exists. By default, its content is durable too.
    fn create_unsynced(&self, file: &Path, content: &[u8]) -> io::Result<()> {
        self.create(file, content)
    }

    /// Gives a file a second name atomically. Fails if the name exists.
    fn link(&self, file: &Path, name: &Path) -> io::Result<()>;

    /// Renames a file atomically, replacing a file with the new name.
    fn rename(&self, file: &Path, name: &Path) -> io::Result<()>;

    /// Removes a name.
    fn remove(&self, file: &Path) -> io::Result<()>;

    /// Reads a complete file.
    fn read(&self, file: &Path) -> io::Result<Vec<u8>>;

    /// Returns the size of a file and the time of its last use.
    ///
    /// Only caches call this and [`Files::touch`], so the default implementations use the local file system.
    fn usage(&self, file: &Path) -> io::Result<Usage> {
        let metadata = fs::metadata(file)?;
        Ok(Usage { bytes: metadata.len(), used: metadata.modified()? })
    }

    /// Marks a file as used now.
    fn touch(&self, file: &Path) -> io::Result<()> {
        File::options().append(true).open(file)?.set_modified(SystemTime::now())
    }

    /// Lists the names in a directory. On a network file system the list may be older than the result of [`Files::read`].
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// Returns the same file layer for use in another thread, so that a slow file system does not block the caller's thread.
    /// Returns `None` if the implementation cannot be used in another thread.
    fn for_other_thread(&self) -> Option<Box<dyn Files + Send>> {
        None
    }
}

/// The size of a file and the time of its last use.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// The size, in bytes.
    pub bytes: u64,
    /// The time of the last write or [`Files::touch`].
    pub used: SystemTime,
}

/// The local file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

impl Files for Disk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        match fs::create_dir(dir) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && dir.is_dir() => Ok(()),
            other => other,
        }
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }

    fn create(&self, file: &Path, content: &[u8]) -> io::Result<()> {
        write_new(file, content)?.sync_all()
    }

    fn create_unsynced(&self, file: &Path, content: &[u8]) -> io::Result<()> {
        write_new(file, content).map(drop)
    }

    fn link(&self, file: &Path, name: &Path) -> io::Result<()> {
        fs::hard_link(file, name)
    }

    fn rename(&self, file: &Path, name: &Path) -> io::Result<()> {
        fs::rename(file, name)
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        fs::remove_file(file)
    }

    fn read(&self, file: &Path) -> io::Result<Vec<u8>> {
        let mut opened = plain_file::open(file)?;
        let mut content = Vec::with_capacity(usize::try_from(opened.metadata()?.len()).unwrap_or_default());
        opened.read_to_end(&mut content).map(|_| content)
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        fs::read_dir(dir)?.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
    }

    fn for_other_thread(&self) -> Option<Box<dyn Files + Send>> {
        Some(Box::new(*self))
    }
}

fn write_new(file: &Path, content: &[u8]) -> io::Result<File> {
    let mut created = File::create_new(file)?;
    created.write_all(content).map(|()| created)
}

/// Removes a file that may be absent.
pub(crate) fn remove_if_there(files: &impl Files, file: &Path) -> io::Result<()> {
    match files.remove(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Removes the least recently used files of a directory, until `max_files` are left.
pub fn keep_newest(files: &impl Files, dir: &Path, max_files: usize) -> io::Result<()> {
    let names = files.list(dir)?;
    let surplus = names.len().saturating_sub(max_files);
    if surplus == 0 {
        return Ok(());
    }
    // A file that another worker is removing counts as the oldest.
    let used = |name: &String| files.usage(&dir.join(name)).map_or(SystemTime::UNIX_EPOCH, |usage| usage.used);
    let mut by_age: Vec<(SystemTime, String)> = names.into_iter().map(|name| (used(&name), name)).collect();
    by_age.sort();
    for (_, name) in by_age.into_iter().take(surplus) {
        // Another worker may have removed the file.
        let _ = files.remove(&dir.join(name));
    }
    Ok(())
}

/// Replaces a file atomically and durably. `writer` makes the temporary name unique to this worker.
pub fn replace(files: &impl Files, dir: &Path, name: &str, writer: &str, content: &[u8]) -> io::Result<()> {
    replace_unsynced(files, dir, name, writer, content)?;
    files.sync_dir(dir)
}

/// Replaces a file atomically. The replacement is durable once `dir` is synced.
pub fn replace_unsynced(files: &impl Files, dir: &Path, name: &str, writer: &str, content: &[u8]) -> io::Result<()> {
    replace_with(files, dir, name, writer, |temporary| files.create(temporary, content))
}

/// Replaces a file atomically. A loss of power may leave the file without its content.
pub fn replace_volatile(files: &impl Files, dir: &Path, name: &str, writer: &str, content: &[u8]) -> io::Result<()> {
    replace_with(files, dir, name, writer, |temporary| files.create_unsynced(temporary, content))
}

/// Replaces a file by the one that `create` creates under a temporary name.
fn replace_with(
    files: &impl Files,
    dir: &Path,
    name: &str,
    writer: &str,
    create: impl FnOnce(&Path) -> io::Result<()>,
) -> io::Result<()> {
    let temporary = dir.join(format!(".tmp-{writer}-{name}"));
    remove_if_there(files, &temporary)?;
    let result = create(&temporary).and_then(|()| files.rename(&temporary, &dir.join(name)));
    result.inspect_err(|_| {
        let _ = files.remove(&temporary);
    })
}
