//! `bloomery import`: converts a Skill of the older dialect into a manifest. `repository` converts directories of skills.

use crate::args::{ImportArgs, ScriptOs};
use crate::check::check_document;
use crate::error::{Error, from_io_result};
use crate::exit::Exit;
use crate::findings::{self, Tally};
use crate::{repository, source};
use bloomery_crds::lists::ConfigMaps;
use bloomery_skills::{Document, Finding, Form, ImportOptions, yaml};
use std::io::{self, Write};
use std::path::Path;

/// The files that make their directory a skill.
const FILES_OF_SKILLS: [&str; 2] = ["skill.json", "SKILL.md"];

/// Converts a file of the older dialect, or the skills of a repository.
///
/// # Errors
/// If the arguments do not fit the input, the input cannot be read, or the manifests cannot be written.
pub fn run(args: &ImportArgs) -> Result<Exit, Error> {
    match &args.path {
        Some(file) if !file.is_dir() => {
            if file.file_name().is_some_and(|name| FILES_OF_SKILLS.iter().any(|known| name == *known)) {
                let message = format!("{} is a part of a skill: name the directory of the skill", file.display());
                return Err(Error::usage(message));
            }
            if args.script_image.is_some() || args.os != ScriptOs::default() {
                return Err(Error::usage("--script-image and --os are for a directory of skills, and not for a file"));
            }
            from_io_result(convert_file(args, file))
        }
        _ => repository::import::run(args, &repository::import::directory(args)?),
    }
}

/// Converts a file of the older dialect into a manifest, and prints all findings. If there is an error, no manifest is
/// written.
fn convert_file(args: &ImportArgs, file: &Path) -> io::Result<Exit> {
    let source = source::read(file)
        .map_err(|error| io::Error::new(error.kind(), format!("cannot read {}: {error}", source::name(file))))?;
    let read = yaml::read(&source.bytes);
    let mut findings = read.findings;
    let manifest = match only_document(&read.documents, findings.is_empty()) {
        Ok(document) => convert(document, args, file, &mut findings)?,
        Err(finding) => {
            findings.extend(finding);
            None
        }
    };
    findings.sort_by_key(Finding::position);
    let tally = Tally::count(&findings);
    findings::print_text(&mut anstream::stderr().lock(), &findings::in_file(&source.name, findings))?;
    if let Some(manifest) = manifest.filter(|_| tally.errors == 0) {
        write_manifest(&manifest, args)?;
        Ok(Exit::Success)
    } else {
        anstream::eprintln!("{}: nothing was written", tally.summary());
        Ok(Exit::Error)
    }
}

/// Returns the only document of a file.
///
/// # Errors
/// Returns the finding that says why the file cannot be converted. Returns no finding if the file has no document and was not
/// `read_completely`, because the reader has already reported the reason.
fn only_document(documents: &[Document], read_completely: bool) -> Result<&Document, Option<Finding>> {
    match documents {
        [document] => match document.form() {
            Form::Dialect => Ok(document),
            Form::Manifest | Form::Foreign => {
                Err(Some(document.error("is a manifest already: apply it, or check it with `bloomery lint`")))
            }
        },
        [] => Err(read_completely.then(|| Finding::of_file("the file has no document"))),
        [_, second, ..] => Err(Some(second.error("is a second document, and import converts one document at a time"))),
    }
}

/// Converts a document to a manifest with comments, and adds its findings. Returns `None` if the document has an error.
fn convert(
    document: &Document,
    args: &ImportArgs,
    file: &Path,
    findings: &mut Vec<Finding>,
) -> io::Result<Option<String>> {
    let options = ImportOptions {
        name: args.name.clone(),
        namespace: args.namespace.clone(),
        model: args.model.clone(),
        problem: args.problem.clone(),
        file: source::stem(file),
        local: false,
    };
    let checked = check_document(document, &options, &[], &ConfigMaps::new());
    findings.extend(checked.findings);
    let manifest = checked.skill.map(|skill| serde_yaml::to_string(&skill)).transpose().map_err(io::Error::other)?;
    Ok(manifest.map(|manifest| manifest + &checked.suggestions))
}

fn write_manifest(manifest: &str, args: &ImportArgs) -> io::Result<()> {
    match &args.output {
        Some(file) => std::fs::write(file, manifest)
            .map_err(|error| io::Error::new(error.kind(), format!("cannot write {}: {error}", file.display()))),
        None => io::stdout().lock().write_all(manifest.as_bytes()),
    }
}
