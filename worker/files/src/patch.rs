//! `apply_patch`: applies a unified diff of one or several files, completely or not at all.
//!
//! `diffy` is not used. It applies a hunk at the nearest of several matching positions, compares line endings, parses one file only,
//! and its errors name only the number of the hunk. Models need to read which line differs.

mod apply;
mod parse;

use crate::Error;
use crate::replace::{MAX_BYTES, Staged, Target, hard_links_note};
use crate::root::Root;
use crate::secrets::Secrets;
use parse::{Change, FilePatch, Hunk};
use serde::Deserialize;

/// The limit on the files of one patch.
const MAX_FILES: usize = 64;

/// The limit on the contents of all patched files together, in bytes.
const MAX_TOTAL_BYTES: u64 = 2 * MAX_BYTES;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Arguments {
    resource: Option<String>,
    patch: String,
}

/// The prepared change of one file.
#[derive(Debug)]
pub(crate) struct PreparedFile {
    /// The path, formatted for messages.
    pub(crate) label: String,
    /// The device and inode number of the existing file.
    pub(crate) identity: Option<(u64, u64)>,
    /// The staged change; `None` if the file stays the same.
    pub(crate) staged: Option<Staged>,
    /// The clause about this file in the answer.
    pub(crate) summary: String,
}

impl PreparedFile {
    /// Returns whether `target` is the same file. If a patch changed one file under two names, one change would be lost.
    fn is_same_file(&self, target: &Target) -> bool {
        self.label == target.label() || (self.identity.is_some() && self.identity == target.identity())
    }
}

/// Answers a call of `apply_patch`. Checks all hunks and writes all contents to temporary files before the first file changes.
///
/// # Errors
/// A message for the model, with the files that were changed, if any.
pub(crate) fn patch(root: &Root, arguments: &Arguments) -> Result<String, Error> {
    let mut patches = parse::parse(&arguments.patch)
        .map_err(|reason| format!("The patch is invalid: {reason}. Nothing was changed."))?;
    if patches.len() > MAX_FILES {
        return Err(format!(
            "The patch has {} files, more than the limit of {MAX_FILES}. Nothing was changed.",
            patches.len()
        )
        .into());
    }
    // Preparing a new file creates its directories, which remain if a later file of the patch fails. So new files come last.
    patches.sort_by_key(|patch| patch.change == Change::Create);
    let mut prepared: Vec<PreparedFile> = Vec::with_capacity(patches.len());
    let mut total_bytes = 0;
    for patch in &patches {
        let target = find_target(root, patch)?;
        if let Some(other) = prepared.iter().find(|other| other.is_same_file(&target)) {
            return Err(format!(
                "{} and {} are the same file. Nothing was changed. Put all hunks for this file under one --- and +++ heading.",
                other.label,
                target.label()
            )
            .into());
        }
        prepared.push(prepare(patch, target, &root.secrets, &mut total_bytes)?);
    }
    commit(prepared)
}

/// Finds the file of a patch, and checks whether it exists as the patch requires.
fn find_target(root: &Root, patch: &FilePatch) -> Result<Target, Error> {
    let target = Target::find(root, &root.resource_path(Some(&patch.path))?, patch.change == Change::Create)?;
    match (patch.change, target.existing.is_some()) {
        (Change::Create, true) => {
            Err(format!("The patch creates {}, but the file exists. Nothing was changed.", target.label()).into())
        }
        (Change::Modify | Change::Remove, false) => {
            Err(format!("{} does not exist. Nothing was changed.", target.label()).into())
        }
        _ => Ok(target),
    }
}

/// Applies a patch to the content of its file, and stages the result. Adds the size of the result to `total_bytes`.
fn prepare(patch: &FilePatch, target: Target, secrets: &Secrets, total_bytes: &mut u64) -> Result<PreparedFile, Error> {
    let content = target.content()?.unwrap_or_default();
    let applied = apply::apply(&content, &patch.hunks, secrets).map_err(|reason| {
        let old: Vec<&str> = patch.hunks.iter().flat_map(Hunk::old_lines).collect();
        let hint = secrets.marks.not_found_hint(&old.join("\n"), &content);
        format!("The patch does not apply to {}: {reason}. Nothing was changed.{hint}", target.label())
    })?;
    let (label, identity) = (target.label().to_owned(), target.identity());
    if patch.change == Change::Remove {
        if !applied.content.is_empty() {
            return Err(format!(
                "The patch removes the file {label}, but not all of its lines: {} bytes would remain. Nothing was changed.",
                applied.content.len()
            )
            .into());
        }
        let summary = format!("removed {label}");
        return Ok(PreparedFile { label, identity, staged: Some(target.stage_removal()?), summary });
    }
    if patch.change == Change::Modify && applied.content == content {
        let summary = format!("did not change {label}");
        return Ok(PreparedFile { label, identity, staged: None, summary });
    }
    *total_bytes += applied.content.len() as u64;
    if *total_bytes > MAX_TOTAL_BYTES {
        return Err(format!(
            "The patched files have more than {MAX_TOTAL_BYTES} bytes together. Nothing was changed. Split the patch."
        )
        .into());
    }
    let action = if patch.change == Change::Create { "created" } else { "changed" };
    let hard_links =
        hard_links_note(target.existing.as_ref()).map_or_else(String::new, |note| format!(", which {note}"));
    let summary = format!("{action} {label} (+{} -{}){}{hard_links}", applied.added, applied.removed, applied.note);
    Ok(PreparedFile { label, identity, staged: Some(target.stage(&applied.content)?), summary })
}

/// Makes all prepared changes, and returns the summary.
///
/// # Errors
/// A message for the model, with the files that were changed, if any.
pub(crate) fn commit(prepared: Vec<PreparedFile>) -> Result<String, Error> {
    let mut summaries: Vec<String> = Vec::with_capacity(prepared.len());
    let mut changed = 0;
    let mut rest = prepared.into_iter();
    while let Some(PreparedFile { staged, summary, .. }) = rest.next() {
        if let Some(staged) = staged {
            if let Err(Error(reason)) = staged.commit() {
                if changed == 0 {
                    return Err(Error(reason));
                }
                return Err(format!(
                    "The patch was applied in part: {}. Then the patch stopped, and {} of its files did not change: {reason}",
                    summaries.join(", "),
                    rest.len() + 1
                )
                .into());
            }
            changed += 1;
        }
        summaries.push(summary);
    }
    if changed == 0 {
        return Ok("The patch changes nothing: the files already have this content.".to_owned());
    }
    Ok(format!("Applied: {}.", summaries.join(", ")))
}

impl crate::call::Call for Arguments {
    fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }
}
