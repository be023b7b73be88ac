//! The ledger's file: one JSON line an entry, synced before anyone is told.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use super::entry::Entry;

/// The journal's name within its directory.
const FILE_NAME: &str = "ledger.jsonl";

/// An open journal, positioned at its end.
#[derive(Debug)]
pub(super) struct Journal {
    file: File,
    /// Set by the first failed write: what the disk holds is unknown then, so nothing more is
    /// written and nothing more acknowledged.
    broken: bool,
}

impl Journal {
    /// Opens or makes the journal in `dir` and reads what it holds.
    ///
    /// A last line without its newline was never acknowledged: it is cut off.
    ///
    /// # Errors
    /// The directory cannot be made, read or synced, or a whole line is no entry of ours.
    pub(super) fn open(dir: &Path) -> io::Result<(Self, Vec<Entry>)> {
        let path = dir.join(FILE_NAME);
        let at = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        std::fs::create_dir_all(dir).map_err(at)?;
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path).map_err(at)?;
        // The name must be durable too: a synced file without a name is lost.
        File::open(dir).and_then(|dir| dir.sync_all()).map_err(at)?;

        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(at)?;
        let (entries, whole) = read_entries(&bytes).map_err(at)?;
        file.set_len(whole).map_err(at)?;
        file.seek(SeekFrom::Start(whole)).map_err(at)?;
        file.sync_all().map_err(at)?;
        Ok((Self { file, broken: false }, entries))
    }

    /// Appends one entry and returns once it is durable.
    ///
    /// # Errors
    /// It could not be made durable, or an earlier one could not: the journal takes no more then.
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

/// Reads whole lines and returns their entries with the length that they take.
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
