//! `bloomery lint`: checks files and repositories of skills, and prints all findings.

pub mod server_tools;

use crate::args::LintArgs;
use crate::check::check_document;
use crate::error::{Error, from_io_result};
use crate::exit::Exit;
use crate::findings::{self, FileFinding, Tally};
use crate::repository::import::Imported;
use crate::{repository, source};
use bloomery_engine::tool::ListedTool;
use bloomery_skills::{CheckedDocument, Document, Finding, Form, ImportOptions, bindings, lists, yaml};
use std::io;
use std::path::Path;

/// Checks all files. Prints their findings, and the number of checked objects.
///
/// # Errors
/// If the tools of `--tools` cannot be read, or the findings cannot be printed.
pub fn run(args: &LintArgs) -> Result<Exit, Error> {
    let tools = args.tools.as_deref().map(server_tools::read).transpose()?.unwrap_or_default();
    from_io_result(check_files(args, &tools))
}

fn check_files(args: &LintArgs, tools: &[ListedTool]) -> io::Result<Exit> {
    let mut file_findings = Vec::new();
    let mut tally = Tally::default();
    let mut object_count = 0;
    for file in &args.files {
        let (findings, of_file, objects) =
            if file.is_dir() { check_repository(file, tools) } else { check(file, tools) };
        object_count += objects;
        tally = tally.plus(of_file);
        file_findings.extend(findings);
    }
    if args.json {
        findings::print_json(&mut io::stdout().lock(), &file_findings)?;
    } else {
        findings::print_text(&mut anstream::stdout().lock(), &file_findings)?;
    }
    let objects = if object_count == 1 { "1 object".to_owned() } else { format!("{object_count} objects") };
    anstream::eprintln!("{objects}: {}", tally.summary());
    let is_failure = tally.errors > 0 || (args.strict && tally.warnings > 0);
    Ok(if is_failure { Exit::Error } else { Exit::Success })
}

/// Converts the skills of a repository in memory, and checks them. Returns the findings, their number, and the number of skills.
fn check_repository(dir: &Path, tools: &[ListedTool]) -> (Vec<FileFinding>, Tally, usize) {
    match repository::import::in_memory(dir, tools) {
        Ok(Imported { count, findings, tally, manifests: _ }) => (findings, tally, count),
        Err(error) => counted(dir, vec![Finding::of_file(error.message)], 0),
    }
}

/// Checks a file. Returns the findings, their number, and the number of Bloomery objects.
fn check(file: &Path, tools: &[ListedTool]) -> (Vec<FileFinding>, Tally, usize) {
    let (findings, objects) = check_file(file, tools);
    counted(file, findings, objects)
}

fn counted(file: &Path, findings: Vec<Finding>, objects: usize) -> (Vec<FileFinding>, Tally, usize) {
    let tally = Tally::count(&findings);
    (findings::in_file(&source::name(file), findings), tally, objects)
}

/// Checks a file against the `tools` of the MCP server, if they are known. Returns its findings, and the number of Bloomery objects in
/// it.
fn check_file(file: &Path, tools: &[ListedTool]) -> (Vec<Finding>, usize) {
    let source = match source::read(file) {
        Ok(source) => source,
        Err(error) => return (vec![Finding::of_file(format!("cannot be read: {error}"))], 0),
    };
    let read = yaml::read(&source.bytes);
    let mut findings = read.findings;
    let bloomery_documents: Vec<&Document> =
        read.documents.iter().filter(|document| document.form() != Form::Foreign).collect();
    if bloomery_documents.is_empty() && findings.is_empty() {
        findings.push(Finding::of_file("there is no Skill, Job or Model in the file"));
    }
    let options = ImportOptions { file: source::stem(file), ..ImportOptions::default() };
    let config_maps = lists::config_maps(&read.documents);
    let checked: Vec<CheckedDocument> =
        bloomery_documents.iter().map(|document| check_document(document, &options, tools, &config_maps)).collect();
    for document in &checked {
        let of_file = bindings::findings(document, &checked).into_iter().chain(lists::findings(document, &config_maps));
        let found = document.findings.iter().cloned().chain(of_file);
        findings.extend(found.map(|finding| Finding { object: document.object_name(), ..finding }));
    }
    findings.sort_by_key(Finding::position);
    (findings, bloomery_documents.len())
}
