//! Input files.

use bloomery_redact::plain_file;
use bloomery_skills::yaml::MAX_BYTES;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// The names of skill files without their extension that say nothing about the Skill.
const COMMON_STEMS: [&str; 2] = ["skill", "domain"];

/// The prefixes of paths that name a file descriptor of this process. A shell passes a pipe as such a path.
const DESCRIPTOR_PREFIXES: [&str; 3] = ["/dev/stdin", "/dev/fd/", "/proc/self/fd/"];

/// An input: its name and its bytes.
#[derive(Debug)]
pub struct Source {
    /// The file's name, or `<stdin>`.
    pub name: String,
    /// The content, with at most one byte more than the limit of the YAML reader.
    pub bytes: Vec<u8>,
}

/// Returns the name of an input in messages.
pub fn name(file: &Path) -> String {
    if is_stdin(file) { "<stdin>".to_owned() } else { file.display().to_string() }
}

/// Returns the name of a file without its extension. A file with a name that every Skill's file may have, such as `skill.yaml`, has
/// the name of its directory. Returns `None` for a file without a name of its own, such as stdin.
pub fn stem(file: &Path) -> Option<String> {
    let stem = file.file_stem().filter(|_| !is_stdin(file) && !is_file_descriptor(file))?;
    let directory = || Some(file.canonicalize().ok()?.parent()?.file_name()?.to_owned());
    let is_common = COMMON_STEMS.iter().any(|common| stem == *common);
    let name = if is_common { directory()? } else { stem.to_owned() };
    Some(name.to_string_lossy().into_owned())
}

/// Reads a file, or stdin for `-`. At most one byte more than the limit of the YAML reader is read, so that the reader can
/// refuse a larger file.
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

/// Opens a regular file, or a file descriptor that this process inherited.
///
/// # Errors
/// If it cannot be opened, or is another kind of file.
pub fn open(file: &Path) -> io::Result<File> {
    if is_file_descriptor(file) { File::open(file) } else { plain_file::open(file) }
}

/// Reads a whole file of at most `max_bytes` bytes.
///
/// # Errors
/// If it cannot be read, is not a regular file, or is larger.
pub fn read_bounded(file: &Path, max_bytes: u64) -> io::Result<Vec<u8>> {
    open(file).and_then(|opened| plain_file::read_bounded(opened, max_bytes))
}

/// Returns whether a path names a file descriptor of this process, such as `/dev/fd/63`. The file may be a pipe.
pub fn is_file_descriptor(file: &Path) -> bool {
    file.to_str().is_some_and(|name| DESCRIPTOR_PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_inherited_pipe_is_read() {
        use std::io::Write;
        use std::os::fd::AsRawFd;
        let (ours, mut theirs) = io::pipe().unwrap();
        theirs.write_all(b"text").unwrap();
        drop(theirs);
        let name = format!("/dev/fd/{}", ours.as_raw_fd());
        assert_eq!(read(Path::new(&name)).unwrap().bytes, b"text");
    }
}
