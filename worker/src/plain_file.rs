//! Files that people and clusters hand over, read within bounds.

use rustix::fs::{Mode, OFlags, open as open_as};
use std::fs::File;
use std::io::{self, Read};
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
}
