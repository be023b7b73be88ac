//! `bloomery lint`: checks files, and prints all findings.

use crate::args::LintArgs;
use crate::check::check_document;
use crate::exit::Exit;
use crate::findings::{self, Tally};
use crate::source;
use bloomery_skills::{CheckedDocument, Document, Finding, Form, ImportOptions, bindings, yaml};
use std::io;
use std::path::Path;

/// Checks all files, prints their findings, and counts the checked objects.
pub fn run(args: &LintArgs) -> io::Result<Exit> {
    let mut located = Vec::new();
    let mut tally = Tally::default();
    let mut checked = 0;
    for file in &args.files {
        let (findings, objects) = check_file(file);
        checked += objects;
        tally = tally.plus(Tally::count(&findings));
        located.extend(findings::in_file(&source::name(file), findings));
    }
    if args.json {
        findings::print_json(&mut io::stdout().lock(), &located)?;
    } else {
        findings::print_text(&mut anstream::stdout().lock(), &located)?;
    }
    let objects = if checked == 1 { "1 object".to_owned() } else { format!("{checked} objects") };
    anstream::eprintln!("{objects}: {}", tally.summary());
    let is_failure = tally.errors > 0 || (args.strict && tally.warnings > 0);
    Ok(if is_failure { Exit::Error } else { Exit::Success })
}

/// Checks a file. Returns its findings, and the number of its Bloomery documents.
fn check_file(file: &Path) -> (Vec<Finding>, usize) {
    let source = match source::read(file) {
        Ok(source) => source,
        Err(error) => return (vec![Finding::of_file(format!("cannot be read: {error}"))], 0),
    };
    let read = yaml::read(&source.bytes);
    let mut findings = read.findings;
    let own: Vec<&Document> = read.documents.iter().filter(|document| document.form() != Form::Foreign).collect();
    if own.is_empty() && findings.is_empty() {
        findings.push(Finding::of_file("there is no Skill, Job or Model in the file"));
    }
    let options = ImportOptions { allow_missing_id: true, ..ImportOptions::default() };
    let all: Vec<CheckedDocument> = own.iter().map(|document| check_document(document, &options)).collect();
    findings.extend(all.iter().flat_map(|checked| bindings::findings(checked, &all)));
    findings.extend(all.into_iter().flat_map(|checked| checked.findings));
    findings.sort_by_key(Finding::position);
    (findings, own.len())
}
