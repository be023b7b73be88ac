//! `edit_file`: replaces one place in a file.

use crate::Error;
use crate::replace::{Target, other_names_sentence};
use crate::root::Root;
use memchr::memmem;
use serde::Deserialize;
use std::ops::Range;

/// The limit on the matches that an error message lists.
const MAX_NAMED: usize = 10;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Arguments {
    resource: Option<String>,
    path: Option<String>,
    old_text: String,
    new_text: String,
}

/// Answers a call.
///
/// # Errors
/// A message for the model; nothing was changed.
pub(crate) fn edit(root: &Root, arguments: &Arguments) -> Result<String, Error> {
    let place = root.place(arguments.path.as_deref())?;
    let target = Target::find(root, &place, false)?;
    let Some(content) = target.content()? else {
        return Err(format!("There is no {}; nothing was done.", place.shown()).into());
    };
    let (old, new) = (&arguments.old_text, &arguments.new_text);
    if old.is_empty() {
        return Err("oldText is empty: say what is there; nothing was done.".into());
    }
    let mut replacement = Replacement { old: old.clone(), new: new.clone() };
    // No match inside a secret: otherwise a model could guess a secret piece by piece.
    let secrets = root.secrets.places(&content);
    let mut places = replacement.places(&content, &secrets);
    if places.is_empty() && ends_lines_with_crlf(&content) {
        // The model does not see line endings, so the file's own apply.
        replacement = Replacement { old: with_crlf(old), new: with_crlf(new) };
        places = replacement.places(&content, &secrets);
    }
    let at = match places.as_slice() {
        [at] => *at,
        [] => {
            return Err(
                (not_there(&content, &secrets, old, &place.shown()) + &root.secrets.marks.hint(old, &content)).into()
            );
        }
        several => return Err(not_unique(&content, several, &place.shown()).into()),
    };
    if replacement.old == replacement.new {
        return Ok(format!("newText is what is there: nothing was changed in {}.", place.shown()));
    }
    let others = other_names_sentence(target.old.as_ref());
    target.stage(&replacement.applied(&content, at))?.commit()?;
    let line = line_of(&content, at);
    Ok(format!("Edited {} at line {line}.{others}", place.shown()))
}

struct Replacement {
    old: String,
    new: String,
}

impl Replacement {
    /// Returns the offsets of the old text outside of secrets, with overlaps, at most one more than [`MAX_NAMED`].
    fn places(&self, content: &[u8], secrets: &[Range<usize>]) -> Vec<usize> {
        let finder = memmem::Finder::new(&self.old);
        let mut places = Vec::new();
        let mut from = 0;
        while let Some(at) = content.get(from..).and_then(|rest| finder.find(rest)) {
            if !is_within(secrets, from + at, self.old.len()) {
                places.push(from + at);
            }
            if places.len() > MAX_NAMED {
                break;
            }
            from += at + 1;
        }
        places
    }

    fn applied(&self, content: &[u8], at: usize) -> Vec<u8> {
        let (before, rest) = content.split_at(at);
        let after = rest.get(self.old.len()..).unwrap_or_default();
        [before, self.new.as_bytes(), after].concat()
    }
}

/// Returns whether `length` bytes at `at` overlap a secret.
fn is_within(secrets: &[Range<usize>], at: usize, length: usize) -> bool {
    secrets.iter().any(|secret| secret.start < at + length && at < secret.end)
}

fn line_of(content: &[u8], at: usize) -> usize {
    memchr::memchr_iter(b'\n', content.get(..at).unwrap_or_default()).count() + 1
}

fn ends_lines_with_crlf(content: &[u8]) -> bool {
    memmem::find(content, b"\r\n").is_some()
}

fn with_crlf(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\n', "\r\n")
}

fn not_there(content: &[u8], secrets: &[Range<usize>], old: &str, shown: &str) -> String {
    let first = old.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let mut places = memmem::find_iter(content, first).filter(|at| !is_within(secrets, *at, first.len()));
    let near = if first.is_empty() { None } else { places.next() };
    let hint = near.map_or_else(String::new, |at| {
        format!(
            " Its first line is at line {}, but what follows or the blanks differ: read it there.",
            line_of(content, at)
        )
    });
    format!("oldText does not stand in {shown}.{hint} Nothing was changed.")
}

fn not_unique(content: &[u8], places: &[usize], shown: &str) -> String {
    let many = if places.len() > MAX_NAMED {
        format!("more than {MAX_NAMED} times")
    } else {
        format!("{} times", places.len())
    };
    let lines: Vec<String> = places.iter().take(MAX_NAMED).map(|at| line_of(content, *at).to_string()).collect();
    format!(
        "oldText stands {many} in {shown}, at the lines {}: take in more of what is around the one that is meant. \
         Nothing was changed.",
        lines.join(", ")
    )
}

impl crate::call::Call for Arguments {
    fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }
}
