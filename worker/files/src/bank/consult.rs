//! The part of the bank that a conversation begins with.

use super::held::Held;
use super::name::CORE;
use super::open_bank::{Authors, OpenBank};
use super::{Bank, DETAILS, MAX_DETAILS, Name, words};
use crate::Error;
use crate::secrets::Secrets;
use crate::text;

/// The limit on the text of all core notes together, in bytes.
const MAX_NOTES: usize = 9 * 1024;

/// The limit on the list of all notes, in bytes.
const MAX_INDEX: usize = 3 * 1024;

/// A part of what a conversation begins with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The note; [`INDEX`] for the list of all.
    pub file: String,
    /// The text, or the reason why it cannot be read.
    pub text: Result<String, Error>,
}

/// The name of the list of all notes.
pub const INDEX: &str = "memory-bank";

impl Bank {
    /// The core notes, shortened where they are long, and the list of all notes.
    pub fn consult(&self) -> Vec<Note> {
        match OpenBank::find(&self.memory) {
            Ok(Some(cabinet)) => cabinet.consult(&self.secrets),
            Ok(None) => Vec::new(),
            Err(error) => vec![Note { file: INDEX.to_owned(), text: Err(super::unusable(&error)) }],
        }
    }

    /// Returns the note that replaces all others if the bank could not be read.
    pub fn unread(why: &str) -> Vec<Note> {
        vec![Note { file: INDEX.to_owned(), text: Err(why.into()) }]
    }
}

/// The text of a note and its content, or the error of reading it.
type Read = Result<(String, Held), Error>;

impl OpenBank {
    fn consult(&self, secrets: &Secrets) -> Vec<Note> {
        let read = |core| {
            let name = Name::Core(core);
            let held = self.held(&name).transpose()?;
            Some((name, held.map(|held| (secrets.text(text::decoded(&held.bytes).text), held))))
        };
        let found: Vec<(Name, Read)> = CORE.into_iter().filter_map(read).collect();
        let sizes: Vec<usize> = found.iter().filter_map(|(_, held)| Some(held.as_ref().ok()?.0.len())).collect();
        let share = share(&sizes, MAX_NOTES);
        let names: Vec<Name> = found.iter().map(|(name, _)| name.clone()).collect();
        let authors = self.authors(&names);
        let mut index = String::new();
        let mut notes: Vec<Note> = Vec::new();
        for (name, held) in found {
            let text = held.map(|(text, held)| {
                index.push_str(&line(&name, &text, &held, &authors));
                part(text, share)
            });
            notes.push(Note { file: name.to_string(), text });
        }
        index.push_str(&self.listed());
        if !index.is_empty() {
            notes.push(Note { file: INDEX.to_owned(), text: Ok(bounded(index)) });
        }
        notes
    }

    /// Lists the notes in the details, one per line.
    fn listed(&self) -> String {
        let Ok((details, is_cut)) = self.details() else { return format!("{DETAILS}/ cannot be read\n") };
        let more = details.len().saturating_sub(MAX_DETAILS);
        let line = |name: &Name| Some(format!("{name}  {} bytes\n", self.size(name)?));
        let mut lines: String = details.iter().take(MAX_DETAILS).filter_map(line).collect();
        if more > 0 || is_cut {
            lines.push_str("[there are more notes in the details than are listed]\n");
        }
        lines
    }
}

/// Formats a core note for the list.
fn line(name: &Name, text: &str, held: &Held, authors: &Authors) -> String {
    let author = authors.suffix(name, &held.digest);
    format!("{name}  {} words, {} bytes, hash {}{author}\n", words(text), held.bytes.len(), held.hash())
}

/// Returns a core note, cut to its share.
fn part(text: String, share: usize) -> String {
    if text.len() <= share {
        return text;
    }
    let end = text.floor_char_boundary(share);
    let shown = text.get(..end).unwrap_or_default();
    format!("{shown}\n[cut off: the first {end} of {} bytes; memory_read gives all of it]", text.len())
}

/// Returns the limit per note with which all notes fit into `room` bytes. Short notes leave room to the others.
fn share(sizes: &[usize], mut room: usize) -> usize {
    let mut sizes = sizes.to_vec();
    sizes.sort_unstable();
    let mut left = sizes.len();
    for size in sizes {
        if size > room / left.max(1) {
            return room / left.max(1);
        }
        room -= size;
        left -= 1;
    }
    usize::MAX
}

/// Cuts the list after the last whole line within [`MAX_INDEX`].
fn bounded(mut index: String) -> String {
    if index.len() > MAX_INDEX {
        let end = index.get(..index.floor_char_boundary(MAX_INDEX)).and_then(|kept| kept.rfind('\n'));
        index.truncate(end.map_or(0, |end| end + 1));
        index.push_str("[there are more notes than are listed]\n");
    }
    index
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn all_have_room_together_and_none_is_cut_that_needs_not_be(sizes in prop::collection::vec(0_usize..20_000, 0..6)) {
            let share = share(&sizes, MAX_NOTES);
            prop_assert!(sizes.iter().map(|size| size.min(&share)).sum::<usize>() <= MAX_NOTES);
            if sizes.iter().sum::<usize>() <= MAX_NOTES {
                prop_assert!(sizes.iter().all(|size| *size <= share));
            }
        }
    }
}
