//! The few file operations that the log stands on, behind one thin layer.
//!
//! A crash test puts a layer here that drops what was not synced; [`Disk`] is the real one. Everything blocks:
//! nothing else may happen before an event is durable, so there is nothing to do meanwhile.

use bloomery_redact::plain_file;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::Path;
use std::time::SystemTime;

/// File operations with the guarantees that the log needs.
pub trait Files {
    /// Makes a directory; one that exists is fine. Not durable before its parent is synced.
    fn create_dir(&self, dir: &Path) -> io::Result<()>;

    /// Makes the entries of a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;

    /// Writes a new file and makes its content durable; fails if the name exists. The name itself is not durable
    /// before the directory is synced.
    fn create(&self, file: &Path, content: &[u8]) -> io::Result<()>;

    /// Makes a new file that [`Files::fill`] will write: what [`Files::create`] does in one, where there is time for a part
    /// of it before. A layer without this makes none.
    fn prepare(&self, _file: &Path) -> io::Result<Option<File>> {
        Ok(None)
    }

    /// Writes a file that was prepared, and makes its content durable.
    fn fill(&self, mut prepared: File, content: &[u8]) -> io::Result<()> {
        prepared.write_all(content)?;
        prepared.sync_all()
    }

    /// Gives a file a second name, at once and only if nothing has that name.
    fn link(&self, file: &Path, name: &Path) -> io::Result<()>;

    /// Gives a file another name, at once, replacing what had it.
    fn rename(&self, file: &Path, name: &Path) -> io::Result<()>;

    /// Removes a name.
    fn remove(&self, file: &Path) -> io::Result<()>;

    /// Reads a file whole.
    fn read(&self, file: &Path) -> io::Result<Vec<u8>>;

    /// How large a file is, and when it was used last.
    ///
    /// This and [`Files::touch`] serve a cache, where nothing depends on them; a layer that leaves them out shows
    /// what the file system of this machine has.
    fn usage(&self, file: &Path) -> io::Result<Usage> {
        let metadata = fs::metadata(file)?;
        Ok(Usage { bytes: metadata.len(), used: metadata.modified()? })
    }

    /// Notes that a file was used now.
    fn touch(&self, file: &Path) -> io::Result<()> {
        File::options().append(true).open(file)?.set_modified(SystemTime::now())
    }

    /// Lists the names in a directory. On a network file system the list may be older than what [`Files::read`]
    /// of a name finds.
    fn list(&self, dir: &Path) -> io::Result<Vec<String>>;

    /// The same layer for another thread, where whoever waits for a file must not keep others waiting. A layer that is
    /// bound to its thread has none, and is used there.
    fn elsewhere(&self) -> Option<Box<dyn Files + Send>> {
        None
    }
}

/// How large a file is, and when it was used last.
#[derive(Debug, Clone, Copy)]
pub struct Usage {
    /// Its size.
    pub bytes: u64,
    /// When it was written, or touched.
    pub used: SystemTime,
}

/// The file system of this machine.
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
        self.fill(new(file)?, content)
    }

    fn prepare(&self, file: &Path) -> io::Result<Option<File>> {
        new(file).map(Some)
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

    fn elsewhere(&self) -> Option<Box<dyn Files + Send>> {
        Some(Box::new(*self))
    }
}

fn new(file: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(file)
}

/// Removes a file that may be absent.
pub(crate) fn remove_if_there(files: &impl Files, file: &Path) -> io::Result<()> {
    match files.remove(file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Removes the files of a directory that were used longest ago, until `most` are left.
pub fn keep_newest(files: &impl Files, dir: &Path, most: usize) -> io::Result<()> {
    let names = files.list(dir)?;
    let surplus = names.len().saturating_sub(most);
    if surplus == 0 {
        return Ok(());
    }
    // One that is just going counts as the oldest.
    let used = |name: &String| files.usage(&dir.join(name)).map_or(SystemTime::UNIX_EPOCH, |usage| usage.used);
    let mut by_age: Vec<(SystemTime, String)> = names.into_iter().map(|name| (used(&name), name)).collect();
    by_age.sort();
    for (_, name) in by_age.into_iter().take(surplus) {
        // Another worker may have been faster.
        let _ = files.remove(&dir.join(name));
    }
    Ok(())
}

/// Replaces a file at once and durably: readers see the old content or the new. `writer` makes the temporary name
/// unique to this worker.
pub fn replace(files: &impl Files, dir: &Path, name: &str, writer: &str, content: &[u8]) -> io::Result<()> {
    swap(files, dir, name, writer, content)?;
    files.sync_dir(dir)
}

/// Replaces a file at once, as [`replace`] does; which of the two is there is not durable before `dir` is synced.
pub fn swap(files: &impl Files, dir: &Path, name: &str, writer: &str, content: &[u8]) -> io::Result<()> {
    let temporary = dir.join(format!(".tmp-{writer}-{name}"));
    remove_if_there(files, &temporary)?;
    let swapped = files.create(&temporary, content).and_then(|()| files.rename(&temporary, &dir.join(name)));
    swapped.inspect_err(|_| {
        let _ = files.remove(&temporary);
    })
}
