//! The files beside a `SKILL.md`.

use super::super::catalogue::Format;
use super::super::directory::{self, FileFindings, SkillDirectory, TextFault};
use super::super::limits;
use super::super::options::RepositoryOptions;
use super::super::parts::trimmed_document;
use super::super::scripts::without_image;
use crate::finding::Finding;
use bloomery_crds::scripts::is_file_name;
use std::collections::BTreeMap;

/// The directory of further documentation.
const REFERENCES: &str = "references/";

/// The directory of scripts.
const SCRIPTS: &str = "scripts/";

/// Returns the name of a file of further documentation, without its extension.
fn reference_name(file: &str) -> Option<&str> {
    file.strip_prefix(REFERENCES)?.strip_suffix(".md")
}

/// Returns the name of the script in a file.
fn script_name(file: &str) -> Option<&str> {
    file.strip_prefix(SCRIPTS).filter(|name| is_file_name(name))
}

/// Returns the documentation: the instructions, and each further document as a section of its own, as far as there is room. Reports
/// the documents without room, and instructions that are too long: a part of them could be a rule that the agent must know.
pub(super) fn docs(
    body: Option<String>,
    directory: &impl SkillDirectory,
    findings: &mut Vec<Finding>,
    others: &mut FileFindings,
) -> Option<String> {
    let max_chars = limits::max_chars(&["docs"]);
    let mut docs = body.unwrap_or_default();
    let mut chars = docs.chars().count();
    if chars > max_chars {
        let message = format!("the instructions have {chars} characters, and at most {max_chars} are allowed");
        findings.push(Finding::of_file(message).hint("move sections to files in references/"));
        return None;
    }
    for (file, name) in directory.files().iter().filter_map(|file| Some((file, reference_name(file)?))) {
        let text = match directory::read_text(directory, file, max_chars) {
            Ok(text) => trimmed_document(&text).unwrap_or_default(),
            Err(TextFault::TooLong(_)) => {
                directory::add(others, file, without_room(max_chars));
                continue;
            }
            Err(fault) => {
                directory::add(others, file, fault.error());
                continue;
            }
        };
        let gap = if docs.is_empty() { "" } else { "\n\n" };
        let section = format!("{gap}# {name}\n\n{text}");
        let length = section.chars().count();
        if chars.saturating_add(length) > max_chars {
            directory::add(others, file, without_room(max_chars));
            continue;
        }
        chars += length;
        docs += &section;
        let message = format!("becomes the section #{name} of the documentation");
        directory::add(others, file, Finding::warning_of_file(message));
    }
    trimmed_document(&docs)
}

fn without_room(max_chars: usize) -> Finding {
    Finding::warning_of_file(format!("is not imported: the documentation has at most {max_chars} characters"))
}

/// Returns the scripts by name. Reports those that are too large, too many or without an image.
pub(super) fn scripts(
    directory: &impl SkillDirectory,
    options: &RepositoryOptions,
    others: &mut FileFindings,
) -> BTreeMap<String, String> {
    let max_scripts = limits::max_entries(&["scripts", "files"]);
    let mut scripts = BTreeMap::new();
    for (file, name) in directory.files().iter().filter_map(|file| Some((file, script_name(file)?))) {
        let max_chars = limits::max_chars(&["scripts", "files", name]);
        match directory::read_text(directory, file, max_chars) {
            Ok(text) if text.is_empty() => {
                directory::add(others, file, Finding::warning_of_file("is not imported: it is empty"));
            }
            Ok(_) if scripts.len() >= max_scripts => {
                let message = format!("is not imported: a Skill has at most {max_scripts} scripts");
                directory::add(others, file, Finding::warning_of_file(message));
            }
            Ok(text) => {
                if options.script_image.is_none() && scripts.is_empty() {
                    directory::add(others, file, without_image(None));
                }
                scripts.insert(name.to_owned(), text);
            }
            Err(TextFault::TooLong(fault)) => {
                let message = format!("is not imported: it {fault}");
                let hint = "put it into a ConfigMap, and name that in spec.scripts.configMap";
                directory::add(others, file, Finding::warning_of_file(message).hint(hint));
            }
            Err(fault) => directory::add(others, file, fault.error()),
        }
    }
    scripts
}

/// Reports the files that a Skill has no place for.
pub(super) fn report_others(directory: &impl SkillDirectory, others: &mut FileFindings) {
    let is_read =
        |file: &str| file == Format::AgentSkill.file() || reference_name(file).is_some() || script_name(file).is_some();
    for file in directory.files().iter().filter(|file| !is_read(file)) {
        let message = "is not imported: a Skill has no place for it";
        directory::add(others, file, Finding::warning_of_file(message));
    }
}
