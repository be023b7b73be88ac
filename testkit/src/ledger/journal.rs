//! The file of the ledger: one JSON line for each entry, synced before the entry is acknowledged.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::entry::Entry;

/// The file name of the journal.
const FILE_NAME: &str = "ledger.jsonl";

/// An open journal, positioned at its end.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    /// Set by the first failed write. The content of the file is unknown then, so no further entry is written or
    /// acknowledged.
    broken: bool,
}

impl Journal {
    /// Opens or creates the journal in `dir` and reads its entries.
    ///
    /// A last line without a newline was never acknowledged, so it is removed.
    ///
    /// # Errors
    /// The directory cannot be created, read or synced, or a complete line is not a valid entry.
    pub(super) fn open(dir: &Path) -> io::Result<(Self, Vec<Entry>)> {
        let path = dir.join(FILE_NAME);
        let at = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        std::fs::create_dir_all(dir).map_err(at)?;
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(at)?;
        // A synced file whose name is not durable would be lost.
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(at)?;

        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(at)?;
        let (entries, whole) = read_entries(&bytes).map_err(at)?;
        file.set_len(whole).map_err(at)?;
        file.seek(SeekFrom::Start(whole)).map_err(at)?;
        file.sync_all().map_err(at)?;
        Ok((Self { file, broken: false }, entries))
    }

    /// Appends an entry and returns once it is durable.
    ///
    /// # Errors
    /// This entry or an earlier one could not be made durable. The journal accepts no more entries then.
    pub(super) fn append(&mut self, entry: &Entry) -> io::Result<()> {
        if self.broken {
            return Err(io::Error::other("an earlier entry could not be made durable; restart the ledger"));
        }
        let mut line = serde_json::to_vec(entry)?;
        line.push(b'\n');
        let written = self.file.write_all(&line).and_then(|()| self.file.sync_all());
        self.broken = written.is_err();
        written
    }
}

/// Reads the complete lines. Returns their entries and their length in bytes.
fn read_entries(bytes: &[u8]) -> io::Result<(Vec<Entry>, u64)> {
    let whole = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let lines = bytes.get(..whole).unwrap_or_default();
    let entries = lines
        .split_inclusive(|byte| *byte == b'\n')
        .enumerate()
        .map(|(index, line)| {
            serde_json::from_slice(line)
                .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("line {}: {error}", index + 1)))
        })
        .collect::<io::Result<Vec<Entry>>>()?;
    Ok((entries, whole as u64))
}
