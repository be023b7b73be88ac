//! The memory bank of a repository: the first notes of each of its Skills.

use super::directory::{self, FileFindings, SkillDirectory, TextFault};
use super::limits;
use crate::finding::Finding;
use bloomery_crds::v1alpha1::CoreNote;
use std::collections::BTreeMap;

/// The directory of the notes that belong to a core note.
const DETAILS: &str = "details/";

/// The extension of the files of notes.
const EXTENSION: &str = ".md";

/// The longest name of a note in [`DETAILS`], in bytes.
const MAX_NAME_BYTES: usize = 64;

/// Reads the notes of the directory `memory-bank`, by their names. Findings name each file that becomes no note, by its path in the
/// directory. The core notes come first if there is no room for all.
pub fn memory_notes(directory: &impl SkillDirectory) -> (BTreeMap<String, String>, FileFindings) {
    let mut notes = BTreeMap::new();
    let mut findings = FileFindings::new();
    let max_notes = limits::max_entries(&["memory", "notes"]);
    let max_chars = limits::max_chars(&["memory", "notes", "projectbrief"]);
    let (core, others): (Vec<&String>, Vec<&String>) =
        directory.files().iter().partition(|file| note_name(file).is_some_and(is_core));
    for file in core.into_iter().chain(others) {
        let Some(name) = note_name(file) else {
            let warning = Finding::warning_of_file("is not a note of the memory bank, and is not imported");
            let known = format!("the notes are {}, and {DETAILS}NAME{EXTENSION}", CoreNote::names());
            directory::add(&mut findings, file, warning.hint(known));
            continue;
        };
        match directory::read_text(directory, file, max_chars) {
            Ok(text) if text.trim().is_empty() => {}
            Ok(_) if notes.len() >= max_notes => {
                let message =
                    format!("is not imported: the notes before it are {max_notes}, which is the largest number");
                directory::add(&mut findings, file, Finding::warning_of_file(message));
            }
            Ok(text) => _ = notes.insert(name.to_owned(), text),
            Err(TextFault::TooLong(fault)) => {
                let warning = Finding::warning_of_file(format!("is not imported: it {fault}"));
                let hint = format!("move parts of it to files in {DETAILS}");
                directory::add(&mut findings, file, warning.hint(hint));
            }
            Err(TextFault::Other(finding)) => directory::add(&mut findings, file, finding),
        }
    }
    (notes, findings)
}

fn is_core(name: &str) -> bool {
    name.parse::<CoreNote>().is_ok()
}

/// Returns the name of the note in a file of the memory bank.
fn note_name(file: &str) -> Option<&str> {
    let name = file.strip_suffix(EXTENSION)?;
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let is_note = match name.strip_prefix(DETAILS) {
        Some(detail) => {
            (1..=MAX_NAME_BYTES).contains(&detail.len()) && !detail.starts_with('.') && detail.bytes().all(is_plain)
        }
        None => is_core(name),
    };
    is_note.then_some(name)
}
