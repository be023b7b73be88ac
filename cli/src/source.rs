//! Input files.

use bloomery_redact::plain_file;
use bloomery_skills::yaml::MAX_BYTES;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The paths of files that this process inherited. A pipe of a shell is read like stdin.
const INHERITED: [&str; 3] = ["/dev/stdin", "/dev/fd/", "/proc/self/fd/"];

/// An input: its name and its bytes.
#[derive(Debug)]
pub struct Source {
    /// The file's name, or `<stdin>`.
    pub name: String,
    /// The content, up to one byte more than the limit.
    pub bytes: Vec<u8>,
}

/// Returns the name of an input in messages.
pub fn name(file: &Path) -> String {
    if is_stdin(file) { "<stdin>".to_owned() } else { file.display().to_string() }
}

/// Reads a file, or stdin for `-`, up to one byte more than the reader accepts.
pub fn read(file: &Path) -> io::Result<Source> {
    let limit = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    if is_stdin(file) {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    } else {
        open(file)?.take(limit).read_to_end(&mut bytes)?;
    }
    Ok(Source { name: name(file), bytes })
}

/// Opens a regular file, or a file that this process inherited.
///
/// # Errors
/// If it cannot be opened, or is another kind of file.
pub fn open(file: &Path) -> io::Result<File> {
    if is_inherited(file) { File::open(file) } else { plain_file::open(file) }
}

/// Reads a whole file of at most `most` bytes.
///
/// # Errors
/// If it cannot be read, is not a regular file, or is larger.
pub fn read_bounded(file: &Path, most: u64) -> io::Result<Vec<u8>> {
    open(file).and_then(|opened| plain_file::whole(opened, most))
}

/// Returns whether a path is that of a file that this process inherited.
pub fn is_inherited(file: &Path) -> bool {
    file.to_str().is_some_and(|name| INHERITED.iter().any(|handed| name.starts_with(handed)))
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_handed_over_is_read_whatever_it_is() {
        use std::io::Write;
        use std::os::fd::AsRawFd;
        let (ours, mut theirs) = io::pipe().unwrap();
        theirs.write_all(b"text").unwrap();
        drop(theirs);
        let name = format!("/dev/fd/{}", ours.as_raw_fd());
        assert_eq!(read(Path::new(&name)).unwrap().bytes, b"text");
    }
}
