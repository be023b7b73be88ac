//! The notes that every conversation starts with.

use super::name::CORE;
use super::note_content::NoteContent;
use super::open_bank::{Authors, OpenBank};
use super::{Bank, DETAILS, MAX_DETAILS, Name, count_words};
use crate::Error;
use crate::secrets::Secrets;
use crate::text;

/// The limit on the text of all core notes together, in bytes.
const MAX_NOTES_BYTES: usize = 9 * 1024;

/// The limit on the list of all notes, in bytes.
const MAX_INDEX_BYTES: usize = 3 * 1024;

/// A note that a conversation starts with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The name of the note; [`INDEX`] for the list of all notes.
    pub file: String,
    /// The text, or the reason that the note cannot be read.
    pub text: Result<String, Error>,
}

/// The name of the list of all notes.
pub const INDEX: &str = "memory-bank";

impl Bank {
    /// Returns the core notes in the scope, cut if they are long, and the list of all notes.
    pub fn consult(&self) -> Vec<Note> {
        match OpenBank::open(&self.skill_dir) {
            Ok(Some(bank)) => bank.consult(&self.secrets, &self.scope),
            Ok(None) => Vec::new(),
            Err(error) => vec![Note { file: INDEX.to_owned(), text: Err(super::bank_error(&error)) }],
        }
    }

    /// Returns the notes of a bank that could not be read: one note, which contains `reason`.
    pub fn failed_consult(reason: &str) -> Vec<Note> {
        vec![Note { file: INDEX.to_owned(), text: Err(reason.into()) }]
    }
}

/// The redacted text of a note and its content, or the error of reading it.
type ReadResult = Result<(String, NoteContent), Error>;

impl OpenBank {
    /// Reads the core notes, and makes the list of all notes. Returns the core notes in `scope`.
    fn consult(&self, secrets: &Secrets, scope: &[String]) -> Vec<Note> {
        let read_note = |core| {
            let name = Name::Core(core);
            let content = self.content(&name).transpose()?;
            let with_text = |content: NoteContent| (secrets.redact(text::decode(&content.bytes).text), content);
            Some((name, content.map(with_text)))
        };
        let core_notes: Vec<(Name, ReadResult)> = CORE.into_iter().filter_map(read_note).collect();
        let is_in_scope = |name: &Name| scope.contains(&name.to_string());
        let in_scope = core_notes.iter().filter(|(name, _)| is_in_scope(name));
        let texts = in_scope.filter_map(|(_, note)| note.as_ref().ok().map(|(text, _)| text));
        let sizes: Vec<usize> = texts.map(String::len).collect();
        let max_bytes = max_bytes_per_note(&sizes, MAX_NOTES_BYTES);
        let names: Vec<Name> = core_notes.iter().map(|(name, _)| name.clone()).collect();
        let authors = self.authors(&names);
        let mut index = String::new();
        let mut notes: Vec<Note> = Vec::new();
        for (name, note) in core_notes {
            let text = note.map(|(text, content)| {
                index.push_str(&index_line(&name, &text, &content, &authors));
                cut(text, max_bytes)
            });
            if is_in_scope(&name) {
                notes.push(Note { file: name.to_string(), text });
            }
        }
        index.push_str(&self.list_details());
        if !index.is_empty() {
            notes.push(Note { file: INDEX.to_owned(), text: Ok(cut_index(index)) });
        }
        notes
    }

    /// Lists the notes in [`DETAILS`], one per line.
    fn list_details(&self) -> String {
        let Ok((details, has_more)) = self.details() else { return format!("{DETAILS}/ cannot be read\n") };
        let line = |name: &Name| Some(format!("{name}  {} bytes\n", self.size(name)?));
        let mut lines: String = details.iter().take(MAX_DETAILS).filter_map(line).collect();
        if details.len() > MAX_DETAILS || has_more {
            lines.extend(["[", DETAILS, "/ has more notes, which are not listed]\n"]);
        }
        lines
    }
}

/// Formats a core note for the list.
fn index_line(name: &Name, text: &str, content: &NoteContent, authors: &Authors) -> String {
    let author = authors.suffix(name, &content.digest);
    format!("{name}  {} words, {} bytes, hash {}{author}\n", count_words(text), content.bytes.len(), content.hash())
}

/// Cuts the text of a core note to `max_bytes`, with a note about the cut.
fn cut(text: String, max_bytes: usize) -> String {
    if text.len() <= max_bytes {
        return text;
    }
    let end = text.floor_char_boundary(max_bytes);
    let beginning = text.get(..end).unwrap_or_default();
    format!("{beginning}\n[cut: the first {end} of {} bytes. Call memory_read for the whole note.]", text.len())
}

/// Returns the limit per note with which all notes together have at most `room` bytes. A short note leaves more room to the others.
/// Returns `usize::MAX` if no note has to be cut.
fn max_bytes_per_note(sizes: &[usize], mut room: usize) -> usize {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    let mut notes_left = sizes.len();
    for size in sizes {
        let share = room / notes_left;
        if size > share {
            return share;
        }
        room -= size;
        notes_left -= 1;
    }
    usize::MAX
}

/// Cuts the list after the last whole line within [`MAX_INDEX_BYTES`].
fn cut_index(mut index: String) -> String {
    if index.len() > MAX_INDEX_BYTES {
        let end = index.get(..index.floor_char_boundary(MAX_INDEX_BYTES)).and_then(|kept| kept.rfind('\n'));
        index.truncate(end.map_or(0, |end| end + 1));
        index.push_str("[the memory bank has more notes, which are not listed]\n");
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn all_notes_fit_together_and_no_note_is_cut_without_need(sizes in prop::collection::vec(0_usize..20_000, 0..6)) {
            let max_bytes = max_bytes_per_note(&sizes, MAX_NOTES_BYTES);
            prop_assert!(sizes.iter().map(|size| size.min(&max_bytes)).sum::<usize>() <= MAX_NOTES_BYTES);
            if sizes.iter().sum::<usize>() <= MAX_NOTES_BYTES {
                prop_assert!(sizes.iter().all(|size| *size <= max_bytes));
            }
        }
    }
}
