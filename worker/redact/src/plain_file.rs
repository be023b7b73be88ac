//! Opens files whose paths come from people or clusters. Such a path may lead to a pipe or a device. Therefore only regular files are
//! opened, and at most a given number of bytes is read.

use rustix::fs::{Mode, OFlags, open as open_as, openat};
use rustix::io::Errno;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::path::Path;

/// Opens a regular file for reading. Never waits, even if the path is that of a named pipe.
///
/// # Errors
/// If the path cannot be opened, or leads to something other than a regular file or a directory.
pub fn open(file: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let opened = File::from(open_as(file, flags, Mode::empty())?);
    let metadata = opened.metadata()?;
    // A directory is not refused here, because reading it fails with a clear error.
    if metadata.is_file() || metadata.is_dir() { Ok(opened) } else { Err(io::Error::other("it is not a regular file")) }
}

/// Opens a directory, without following a symbolic link at the end of the path.
///
/// # Errors
/// If the path cannot be opened, or is not a directory.
pub fn open_dir(dir: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::DIRECTORY | OFlags::NOFOLLOW;
    open_as(dir, flags, Mode::empty()).map(File::from).map_err(|error| match error {
        Errno::NOTDIR | Errno::LOOP => path_error(dir, "is not a directory: a symbolic link is not followed"),
        error => error.into(),
    })
}

/// Opens a regular file in a directory for appending, and creates it if it is missing. Follows no symbolic link, and never waits.
///
/// # Errors
/// If the file cannot be opened or created, or is not a regular file.
pub fn open_to_append(dir: impl AsFd, name: &str) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC;
    let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    let not_regular = || path_error(Path::new(name), "is not a regular file");
    let opened = openat(dir, name, flags, Mode::from_raw_mode(0o666)).map(File::from).map_err(|error| match error {
        // A symbolic link, a pipe without a reader, or a directory.
        Errno::LOOP | Errno::NXIO | Errno::ISDIR => not_regular(),
        error => error.into(),
    })?;
    if opened.metadata()?.is_file() { Ok(opened) } else { Err(not_regular()) }
}

fn path_error(path: &Path, what: &str) -> io::Error {
    io::Error::other(format!("`{}` {what}", path.display()))
}

/// Reads an open file to its end, but at most `max_bytes`.
///
/// # Errors
/// If the file cannot be read, or has more than `max_bytes` bytes.
pub fn read_bounded(opened: impl Read, max_bytes: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    opened.take(max_bytes.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > max_bytes {
        return Err(io::Error::other(format!("it is larger than {max_bytes} bytes")));
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
    fn only_regular_files_up_to_the_limit_are_read_and_a_pipe_does_not_block() {
        let dir = tempfile::tempdir().unwrap();
        let (file, pipe, link) = (dir.path().join("file"), dir.path().join("pipe"), dir.path().join("link"));
        fs::write(&file, "text").unwrap();
        let read = |file: &Path, max_bytes| open(file).and_then(|file| read_bounded(file, max_bytes));
        assert_eq!(read(&file, 4).unwrap(), b"text");
        assert_eq!(read(&file, 3).unwrap_err().to_string(), "it is larger than 3 bytes");
        mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        std::os::unix::fs::symlink(&pipe, &link).unwrap();
        for refused in [&pipe, &link, Path::new("/dev/zero")] {
            let error = open(refused).unwrap_err().to_string();
            assert_eq!(error, "it is not a regular file", "{}", refused.display());
        }
        assert!(read(dir.path(), 4).unwrap_err().to_string().contains("directory"));
        assert_eq!(open(&dir.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn only_regular_files_are_appended_to_and_no_link_is_followed() {
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
        // This pipe has a reader.
        let _reader = open_as(at("read"), OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty()).unwrap();
        let handle = open_dir(dir.path()).unwrap();
        for refused in ["link", "dangling", "dir", "pipe", "read"] {
            let error = open_to_append(&handle, refused).unwrap_err().to_string();
            assert_eq!(error, format!("`{refused}` is not a regular file"));
        }
        for text in ["one", "two"] {
            open_to_append(&handle, "new").unwrap().write_all(text.as_bytes()).unwrap();
        }
        assert_eq!(fs::read_to_string(at("new")).unwrap(), "onetwo");
        assert_eq!(fs::read_to_string(at("outside")).unwrap(), "outside");
        assert!(!at("none").exists());
        for refused in ["dir-link", "outside"] {
            assert!(open_dir(&at(refused)).unwrap_err().to_string().contains("is not a directory"), "{refused}");
        }
    }
}
