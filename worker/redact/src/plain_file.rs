//! Files that may be anything: those that people and clusters hand over, read within bounds, and those that are added to.

use rustix::fs::{Mode, OFlags, open as open_as, openat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

/// Opens a file. What is none, such as a pipe with a name, may never end, nor even begin: it is not waited for.
///
/// # Errors
/// If it cannot be opened, or is no regular file.
pub fn open(file: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = File::from(open_as(file, flags, Mode::empty())?);
    let metadata = opened.metadata()?;
    // A directory says itself that it is one.
    if metadata.is_file() || metadata.is_dir() { Ok(opened) } else { Err(io::Error::other("it is no regular file")) }
}

/// Opens a directory that is no symbolic link.
///
/// # Errors
/// If it cannot be opened, or is something else.
pub fn open_dir(dir: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    open_as(dir, flags, Mode::empty()).map(File::from).map_err(|error| match error {
        Errno::NOTDIR | Errno::LOOP => other(dir, "is no directory: a symbolic link is not followed"),
        error => error.into(),
    })
}

/// Opens a file in a directory to be added to, and makes it where there is none. What else has the name, a symbolic link too,
/// is neither followed nor waited for.
///
/// # Errors
/// If it cannot be opened or made, or is no regular file.
pub fn open_to_append(dir: impl AsFd, name: &str) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC;
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let none = || other(Path::new(name), "is no regular file");
    let opened = openat(dir, name, flags, Mode::from_raw_mode(0o666)).map(File::from).map_err(|error| match error {
        // A symbolic link; a pipe that nobody reads; a directory.
        Errno::LOOP | Errno::NXIO | Errno::ISDIR => none(),
        error => error.into(),
    })?;
    if opened.metadata()?.is_file() { Ok(opened) } else { Err(none()) }
}

fn other(path: &Path, what: &str) -> io::Error {
    io::Error::other(format!("`{}` {what}", path.display()))
}

/// All that comes out of what was opened, which may be so many bytes.
///
/// # Errors
/// If it cannot be read, or is more.
pub fn whole(opened: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    opened.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        return Err(io::Error::other(format!("it is larger than {most} bytes")));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, mknodat};
    use std::fs;
    use std::io::Write;

    #[test]
    fn only_files_are_read_within_bounds_and_no_pipe_is_waited_for() {
        let dir = tempfile::tempdir().unwrap();
        let (file, pipe, link) = (dir.path().join("file"), dir.path().join("pipe"), dir.path().join("link"));
        fs::write(&file, "text").unwrap();
        let read = |file: &Path, most| open(file).and_then(|file| whole(file, most));
        assert_eq!(read(&file, 4).unwrap(), b"text");
        assert_eq!(read(&file, 3).unwrap_err().to_string(), "it is larger than 3 bytes");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        std::os::unix::fs::symlink(&pipe, &link).unwrap();
        for none in [&pipe, &link, Path::new("/dev/zero")] {
            let error = open(none).unwrap_err().to_string();
            assert_eq!(error, "it is no regular file", "{}", none.display());
        }
        assert!(read(dir.path(), 4).unwrap_err().to_string().contains("directory"));
        assert_eq!(open(&dir.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn only_files_are_added_to_and_no_link_is_followed() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(at("outside"), "outside").unwrap();
        std::os::unix::fs::symlink("outside", at("link")).unwrap();
        std::os::unix::fs::symlink("none", at("dangling")).unwrap();
        std::os::unix::fs::symlink(".", at("dir-link")).unwrap();
        fs::create_dir(at("dir")).unwrap();
        for pipe in ["pipe", "read"] {
            mknodat(CWD, at(pipe), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        }
        // Somebody reads this one.
        let _reader = open_as(at("read"), OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).unwrap();
        let handle = open_dir(dir.path()).unwrap();
        for none in ["link", "dangling", "dir", "pipe", "read"] {
            let error = open_to_append(&handle, none).unwrap_err().to_string();
            assert_eq!(error, format!("`{none}` is no regular file"));
        }
        for text in ["one", "two"] {
            open_to_append(&handle, "new").unwrap().write_all(text.as_bytes()).unwrap();
        }
        assert_eq!(fs::read_to_string(at("new")).unwrap(), "onetwo");
        assert_eq!(fs::read_to_string(at("outside")).unwrap(), "outside");
        assert!(!at("none").exists());
        for none in ["dir-link", "outside"] {
            assert!(open_dir(&at(none)).unwrap_err().to_string().contains("is no directory"), "{none}");
        }
    }
}
