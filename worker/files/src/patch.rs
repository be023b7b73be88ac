//! `apply_patch`: a unified diff of one or several files, all of it or nothing.

mod apply;
mod parse;

use crate::Error;
use crate::replace::{MAX_BYTES, Staged, Target, other_names};
use crate::root::Root;
use crate::secrets::Secrets;
use parse::{Change, FilePatch, Hunk};
use serde::Deserialize;

/// The most files of one patch.
const MAX_FILES: usize = 64;

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct Arguments {
    resource: Option<String>,
    patch: String,
}

/// A file that is ready to be changed, and the summary of its change.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) shown: String,
    pub(crate) identity: Option<(u64, u64)>,
    pub(crate) staged: Option<Staged>,
    pub(crate) summary: String,
}

impl Ready {
    /// Returns whether it is the same file. A patch of two names of one file would lose one of the changes.
    fn is_about(&self, target: &Target) -> bool {
        self.shown == target.shown() || (self.identity.is_some() && self.identity == target.identity())
    }
}

/// Answers a call. All files are looked at, and all contents written beside them, before the first one changes.
///
/// # Errors
/// A message for the model: nothing was changed, or which files were.
pub(crate) fn patch(root: &Root, arguments: &Arguments) -> Result<String, Error> {
    let mut patches = parse::parse(&arguments.patch)
        .map_err(|why| format!("The patch cannot be read: {why}. Nothing was changed."))?;
    if patches.len() > MAX_FILES {
        return Err(
            format!("The patch has {} files, more than {MAX_FILES}. Nothing was changed.", patches.len()).into()
        );
    }
    // Directories are made for new files once all others fit.
    patches.sort_by_key(|patch| patch.change == Change::Create);
    let mut ready: Vec<Ready> = Vec::with_capacity(patches.len());
    let mut bytes = 0;
    for patch in &patches {
        let target = find(root, patch)?;
        if let Some(other) = ready.iter().find(|other| other.is_about(&target)) {
            return Err(format!(
                "{} and {} are one file: put what the patch changes of it under one heading. Nothing was changed.",
                other.shown,
                target.shown()
            )
            .into());
        }
        ready.push(prepare(patch, target, &root.secrets, &mut bytes)?);
    }
    commit(ready)
}

fn find(root: &Root, patch: &FilePatch) -> Result<Target, Error> {
    let place = root.place(Some(&patch.path))?;
    let target = Target::find(root, &place, patch.change == Change::Create)?;
    match (patch.change, target.old.is_some()) {
        (Change::Create, true) => {
            Err(format!("{} is there already, and the patch makes it anew. Nothing was changed.", target.shown())
                .into())
        }
        (Change::Modify | Change::Remove, false) => {
            Err(format!("There is no {}. Nothing was changed.", target.shown()).into())
        }
        _ => Ok(target),
    }
}

fn prepare(patch: &FilePatch, target: Target, secrets: &Secrets, bytes: &mut u64) -> Result<Ready, Error> {
    let content = target.content()?.unwrap_or_default();
    let applied = apply::apply(&content, &patch.hunks, secrets).map_err(|why| {
        let old: Vec<&str> = patch.hunks.iter().flat_map(Hunk::old).collect();
        let hint = secrets.marks.hint(&old.join("\n"), &content);
        format!("The patch does not fit {}: {why}.{hint} Nothing was changed.", target.shown())
    })?;
    let (shown, identity, others) = (target.shown().to_owned(), target.identity(), other_names(target.old.as_ref()));
    let others = others.map_or_else(String::new, |names| format!(", which {names}"));
    if patch.change == Change::Remove {
        if !applied.content.is_empty() {
            return Err(format!(
                "The patch removes {shown}, but not all of its lines: {} bytes would be left. Nothing was changed.",
                applied.content.len()
            )
            .into());
        }
        let summary = format!("removed {shown}");
        return Ok(Ready { shown, identity, staged: Some(target.stage_removal()?), summary });
    }
    if patch.change == Change::Modify && applied.content == content {
        let summary = format!("{shown} stays as it is");
        return Ok(Ready { shown, identity, staged: None, summary });
    }
    *bytes += applied.content.len() as u64;
    if *bytes > 2 * MAX_BYTES {
        return Err(
            format!("The patched files have more than {} bytes together. Nothing was changed.", 2 * MAX_BYTES).into()
        );
    }
    let what = if patch.change == Change::Create { "made" } else { "changed" };
    let summary = format!("{what} {shown} (+{} -{}){}{others}", applied.added, applied.removed, applied.note);
    Ok(Ready { shown, identity, staged: Some(target.stage(&applied.content)?), summary })
}

pub(crate) fn commit(ready: Vec<Ready>) -> Result<String, Error> {
    let mut summaries: Vec<String> = Vec::with_capacity(ready.len());
    let mut changed = 0;
    let mut rest = ready.into_iter();
    while let Some(Ready { staged, summary, .. }) = rest.next() {
        if let Some(staged) = staged {
            if let Err(why) = staged.commit() {
                if changed == 0 {
                    return Err(why);
                }
                let left = rest.len() + 1;
                return Err(format!(
                    "{why} Before that the patch has {}. It was stopped there; {left} of its files are as they were.",
                    summaries.join(", ")
                )
                .into());
            }
            changed += 1;
        }
        summaries.push(summary);
    }
    if changed == 0 {
        return Ok("The patch changes nothing: the files already match.".to_owned());
    }
    Ok(format!("Applied: {}.", summaries.join(", ")))
}

impl crate::call::Call for Arguments {
    fn resource(&self) -> Option<&str> {
        self.resource.as_deref()
    }
}
