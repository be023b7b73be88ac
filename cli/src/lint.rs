//! `bloomery lint`.

use crate::args::LintArgs;
use crate::check::check_document;
use crate::exit::Exit;
use crate::findings::{self, Tally};
use crate::source;
use bloomery_skills::{Checked, Document, Finding, Form, Options, bindings, yaml};
use std::io;
use std::path::Path;

/// Checks all files, and prints all findings.
pub fn run(args: &LintArgs) -> io::Result<Exit> {
    let mut located = Vec::new();
    let mut tally = Tally::default();
    let mut looked_at = 0;
    for file in &args.files {
        let (findings, ours) = check_file(file);
        looked_at += ours;
        tally = tally.plus(Tally::count(&findings));
        located.extend(findings::located(&source::name(file), findings));
    }
    if args.json {
        findings::json(&mut io::stdout().lock(), &located)?;
    } else {
        findings::text(&mut anstream::stdout().lock(), &located)?;
    }
    let objects = if looked_at == 1 { "1 object".to_owned() } else { format!("{looked_at} objects") };
    anstream::eprintln!("{objects}: {}", tally.summary());
    let bad = tally.errors > 0 || (args.strict && tally.warnings > 0);
    Ok(if bad { Exit::Error } else { Exit::Success })
}

/// Returns the findings of a file, and the number of its documents that are Bloomery's.
fn check_file(file: &Path) -> (Vec<Finding>, usize) {
    let source = match source::read(file) {
        Ok(source) => source,
        Err(error) => return (vec![Finding::of_file(format!("cannot be read: {error}"))], 0),
    };
    let read = yaml::read(&source.bytes);
    let mut findings = read.findings;
    let ours: Vec<&Document> = read.documents.iter().filter(|document| document.form() != Form::Foreign).collect();
    if ours.is_empty() && findings.is_empty() {
        findings.push(Finding::of_file("there is no Skill, Job or Model in it"));
    }
    let options = Options { nameless: true, ..Options::default() };
    let all: Vec<Checked> = ours.iter().map(|document| check_document(document, &options)).collect();
    findings.extend(all.iter().flat_map(|checked| bindings::findings(checked, &all)));
    findings.extend(all.into_iter().flat_map(|checked| checked.findings));
    findings.sort_by_key(Finding::position);
    (findings, ours.len())
}
