//! `edit_file`: replaces a text that occurs once in a file.

use crate::Error;
use crate::replace::{Target, hard_links_sentence};
use crate::root::Root;
use memchr::memmem;
use serde::Deserialize;
use std::ops::Range;

/// The limit on the matches that an error message lists.
const MAX_LISTED_MATCHES: usize = 10;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Arguments {
    resource: Option<String>,
    path: Option<String>,
    old_text: String,
    new_text: String,
}

/// Answers a call of `edit_file`.
///
/// # Errors
/// A message for the model. Nothing was changed.
pub(crate) fn edit(root: &Root, arguments: &Arguments) -> Result<String, Error> {
    let path = root.resource_path(arguments.path.as_deref())?;
    let target = Target::find(root, &path, false)?;
    let Some(content) = target.content()? else {
        return Err(format!("{} does not exist. Nothing was changed.", path.describe()).into());
    };
    let (old, new) = (&arguments.old_text, &arguments.new_text);
    if old.is_empty() {
        return Err("oldText is empty. Set it to the text to replace. Nothing was changed.".into());
    }
    let mut replacement = Replacement { old: old.clone(), new: new.clone() };
    // Matches inside a secret do not count. Otherwise a model could guess a secret piece by piece.
    let secrets = root.secrets.ranges(&content);
    let mut matches = replacement.matches(&content, &secrets);
    if matches.is_empty() && ends_lines_with_crlf(&content) {
        // The model does not see line endings, so the texts get those of the file.
        replacement = Replacement { old: with_crlf(old), new: with_crlf(new) };
        matches = replacement.matches(&content, &secrets);
    }
    let at = match matches.as_slice() {
        [at] => *at,
        [] => {
            let message = not_found(&content, &secrets, old, &path.describe());
            return Err((message + &root.secrets.marks.not_found_hint(old, &content)).into());
        }
        several => return Err(not_unique(&content, several, &path.describe()).into()),
    };
    if replacement.old == replacement.new {
        return Ok(format!("oldText and newText are equal. {} was not changed.", path.describe()));
    }
    let hard_links = hard_links_sentence(target.existing.as_ref());
    target.stage(&replacement.apply(&content, at))?.commit()?;
    let line = line_number(&content, at);
    Ok(format!("Edited {} at line {line}.{hard_links}", path.describe()))
}

struct Replacement {
    old: String,
    new: String,
}

impl Replacement {
    /// Returns the offsets of the old text outside of secrets, including overlapping ones, but at most one more than
    /// [`MAX_LISTED_MATCHES`].
    fn matches(&self, content: &[u8], secrets: &[Range<usize>]) -> Vec<usize> {
        let finder = memmem::Finder::new(&self.old);
        let mut matches = Vec::new();
        let mut from = 0;
        while let Some(at) = content.get(from..).and_then(|rest| finder.find(rest)) {
            if !overlaps_secret(secrets, from + at, self.old.len()) {
                matches.push(from + at);
            }
            if matches.len() > MAX_LISTED_MATCHES {
                break;
            }
            from += at + 1;
        }
        matches
    }

    /// Returns the content with the old text at `at` replaced.
    fn apply(&self, content: &[u8], at: usize) -> Vec<u8> {
        let (before, rest) = content.split_at(at);
        let after = rest.get(self.old.len()..).unwrap_or_default();
        [before, self.new.as_bytes(), after].concat()
    }
}

/// Returns whether `length` bytes at `at` overlap a secret.
fn overlaps_secret(secrets: &[Range<usize>], at: usize, length: usize) -> bool {
    secrets.iter().any(|secret| secret.start < at + length && at < secret.end)
}

/// Returns the number of the line at an offset, from 1.
fn line_number(content: &[u8], at: usize) -> usize {
    memchr::memchr_iter(b'\n', content.get(..at).unwrap_or_default()).count() + 1
}

fn ends_lines_with_crlf(content: &[u8]) -> bool {
    memmem::find(content, b"\r\n").is_some()
}

fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

/// Returns the message for a text that was not found. If its first line was found, the message names that line.
fn not_found(content: &[u8], secrets: &[Range<usize>], old: &str, file: &str) -> String {
    let first_line = old.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let mut matches =
        memmem::find_iter(content, first_line).filter(|at| !overlaps_secret(secrets, *at, first_line.len()));
    let first_match = if first_line.is_empty() { None } else { matches.next() };
    let hint = first_match.map_or_else(String::new, |at| {
        format!(
            " Its first line is at line {}, but the whitespace or the lines after it differ. Read the file there.",
            line_number(content, at)
        )
    });
    format!("oldText does not occur in {file}. Nothing was changed.{hint}")
}

/// Returns the message for a text that was found several times.
fn not_unique(content: &[u8], matches: &[usize], file: &str) -> String {
    let times = if matches.len() > MAX_LISTED_MATCHES {
        format!("more than {MAX_LISTED_MATCHES} times")
    } else {
        format!("{} times", matches.len())
    };
    let listed = matches.iter().take(MAX_LISTED_MATCHES);
    let lines: Vec<String> = listed.map(|at| line_number(content, *at).to_string()).collect();
    format!(
        "oldText occurs {times} in {file}, at the lines {}. Nothing was changed. Add more of the surrounding text to oldText, so \
         that it occurs once.",
        lines.join(", ")
    )
}

impl crate::call::Call for Arguments {
    fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }
}
