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
use bloomery_skills::invokers::{self, InputSkill};
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
    let (mut file_findings, mut tally) = (Vec::new(), Tally::default());
    let (mut files, mut skills, mut object_count) = (Vec::new(), Vec::new(), 0);
    for file in &args.files {
        if file.is_dir() {
            let (findings, of_repository, count) = check_repository(file, tools);
            file_findings.extend(findings);
            tally = tally.plus(of_repository);
            object_count += count;
            continue;
        }
        let name = source::name(file);
        let checked = check_file(file, &name, tools);
        object_count += checked.object_count;
        skills.extend(checked.skills);
        files.push((name, checked.findings));
    }
    let of_skills = invokers::findings(skills);
    for (name, mut findings) in files {
        findings.extend(of_skills.iter().filter(|(file, _)| *file == name).map(|(_, finding)| finding.clone()));
        findings.sort_by_key(Finding::position);
        tally = tally.plus(Tally::count(&findings));
        file_findings.extend(findings::in_file(&name, findings));
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
        Err(error) => {
            let findings = vec![Finding::of_file(error.message)];
            let tally = Tally::count(&findings);
            (findings::in_file(&source::name(dir), findings), tally, 0)
        }
    }
}

/// A checked file.
#[derive(Default)]
struct CheckedFile {
    /// Its findings, in no order.
    findings: Vec<Finding>,
    /// Its Skills.
    skills: Vec<InputSkill>,
    /// The number of Bloomery objects in it.
    object_count: usize,
}

/// Checks a file against the `tools` of the MCP server, if they are known. `name` is the file as findings name it.
fn check_file(file: &Path, name: &str, tools: &[ListedTool]) -> CheckedFile {
    let source = match source::read(file) {
        Ok(source) => source,
        Err(error) => {
            let findings = vec![Finding::of_file(format!("cannot be read: {error}"))];
            return CheckedFile { findings, ..CheckedFile::default() };
        }
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
    let skills = checked.iter().filter_map(|document| InputSkill::new(name, document)).collect();
    CheckedFile { findings, skills, object_count: bloomery_documents.len() }
}
