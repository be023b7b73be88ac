//! Reads the scripts of a skill with a `skill.json`.

use super::catalogue::{DOCS, Format};
use super::directory::{self, SkillDirectory};
use super::features::extensions;
use super::limits;
use super::options::RepositoryOptions;
use super::parts::ConvertedSkill;
use super::scripts::{self, Selection};
use crate::finding::{Finding, did_you_mean, quoted};
use crate::tree::{Node, Value};
use bloomery_crds::scripts::is_file_name;
use std::collections::{BTreeMap, BTreeSet};

/// Replaces the scripts of features by those that fit the operating system of the image, and reads them. Reports the files that are
/// not imported.
pub(super) fn take(
    spec: &mut Node,
    directory: &impl SkillDirectory,
    options: &RepositoryOptions,
    converted: &mut ConvertedSkill,
) -> BTreeMap<String, String> {
    let named: BTreeSet<String> = extensions(spec)
        .filter_map(|extension| extension.get_mut("script")?.text().map(str::to_owned))
        .filter(|file| is_file_name(file))
        .collect();
    let selection = scripts::select(directory.files(), &named, options.os);
    let others = &mut converted.others;
    let was_named = name_scripts(spec, directory, &selection, options, &mut converted.checked.findings);
    if let Some(file) = selection.files.first().filter(|_| options.script_image.is_none() && !was_named) {
        directory::add(others, file, scripts::without_image(None));
    }
    for file in &selection.foreign {
        let message = "is for another operating system than the image, and there is no other script of this name";
        directory::add(others, file, Finding::warning_of_file(message));
    }
    let is_used = |file: &String| selection.files.contains(file) || selection.replaced.contains_key(file);
    for file in directory.files().iter().filter(|file| ![DOCS, Format::SkillJson.file()].contains(&file.as_str())) {
        if !is_used(file) {
            let message = "is not imported: it is neither skill.md nor script.*, and no feature names it as its script";
            directory::add(others, file, Finding::warning_of_file(message));
        }
    }
    let mut texts = BTreeMap::new();
    for file in &selection.files {
        match directory::read_text(directory, file, limits::max_chars(&["scripts", "files", file.as_str()])) {
            Ok(text) if text.is_empty() => directory::add(others, file, Finding::of_file("is empty")),
            Ok(text) => _ = texts.insert(file.clone(), text),
            Err(fault) => directory::add(others, file, fault.error()),
        }
    }
    texts
}

/// Writes the selected scripts into the features, and reports those that cannot be used. Returns whether a missing image was reported.
fn name_scripts(
    spec: &mut Node,
    directory: &impl SkillDirectory,
    selection: &Selection,
    options: &RepositoryOptions,
    findings: &mut Vec<Finding>,
) -> bool {
    let mut is_reported = false;
    for node in extensions(spec).filter_map(|extension| extension.get_mut("script")) {
        let Some(script) = node.text() else { continue };
        let used = selection.used(script).to_owned();
        let fault = if !is_file_name(script) {
            Some(format!("must be the name of a file beside skill.json, and is {}", quoted(script)))
        } else if !selection.files.contains(&used) {
            let near = did_you_mean(script, directory.files().iter().map(String::as_str));
            Some(format!("names no file: there is no {} beside skill.json{near}", quoted(script)))
        } else {
            None
        };
        match fault {
            Some(fault) => {
                findings.push(Finding::error(&node.place, fault));
                node.value = Value::Null;
            }
            None if options.script_image.is_none() => {
                is_reported = true;
                findings.push(scripts::without_image(Some(&node.place)));
            }
            None => node.value = Value::text(used),
        }
    }
    is_reported
}
