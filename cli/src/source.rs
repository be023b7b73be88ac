//! Where documents come from.

use bloomery_crds::dialect::MAX_BYTES;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// An input as people name it, and its bytes.
#[derive(Debug)]
pub struct Source {
    /// The file's name, or `<stdin>`.
    pub name: String,
    /// What it holds, up to one byte more than is read.
    pub bytes: Vec<u8>,
}

/// The name of an input in messages.
pub fn name(file: &Path) -> String {
    if is_stdin(file) { "<stdin>".to_owned() } else { file.display().to_string() }
}

/// Reads a file, or stdin where it is called `-`; no more than the reader takes, and one byte.
pub fn read(file: &Path) -> io::Result<Source> {
    let limit = u64::try_from(MAX_BYTES).unwrap_or(u64::MAX).saturating_add(1);
    let mut bytes = Vec::new();
    if is_stdin(file) {
        io::stdin().lock().take(limit).read_to_end(&mut bytes)?;
    } else {
        File::open(file)?.take(limit).read_to_end(&mut bytes)?;
    }
    Ok(Source { name: name(file), bytes })
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}
