//! `bloomery lint`.

use crate::args::LintArgs;
use crate::report::{self, Located, Tally};
use crate::{Verdict, check, source};
use bloomery_crds::dialect::{Document, Finding, Form, Imported, Options, documents, form, import, manifest};
use std::io;
use std::path::Path;

/// Looks at every file, and says all that is wrong with all of them.
pub fn run(args: &LintArgs) -> io::Result<Verdict> {
    let mut located = Vec::new();
    let mut looked_at = 0;
    for file in &args.files {
        let (findings, ours) = of_file(file);
        looked_at += ours;
        let name = source::name(file);
        located.extend(findings.into_iter().map(|finding| Located { file: name.clone(), finding }));
    }
    if args.json {
        report::json(&mut io::stdout().lock(), &located)?;
    } else {
        report::text(&mut anstream::stdout().lock(), &located)?;
    }
    let tally = Tally::of(&located);
    let objects = if looked_at == 1 { "1 object".to_owned() } else { format!("{looked_at} objects") };
    anstream::eprintln!("{objects}: {}", tally.words());
    let bad = tally.errors > 0 || (args.strict && tally.warnings > 0);
    Ok(if bad { Verdict::Bad } else { Verdict::Good })
}

/// What is wrong with a file, and how many of its documents are ours.
fn of_file(file: &Path) -> (Vec<Finding>, usize) {
    let source = match source::read(file) {
        Ok(source) => source,
        Err(error) => return (vec![Finding::of_file(format!("cannot be read: {error}"))], 0),
    };
    let read = documents(&source.bytes);
    let mut findings = read.findings;
    let ours: Vec<&Document> = read.documents.iter().filter(|document| form(document) != Form::Foreign).collect();
    if ours.is_empty() && findings.is_empty() {
        findings.push(Finding::of_file("there is no Skill, Job or Model in it"));
    }
    for document in &ours {
        findings.extend(of_document(document));
    }
    findings.sort_by_key(|finding| (finding.line, finding.column));
    (findings, ours.len())
}

fn of_document(document: &Document) -> Vec<Finding> {
    let (mut findings, kind, skill, object, root) = if form(document) == Form::Dialect {
        let Imported { skill, root, object, findings } =
            import(document, &Options { nameless: true, ..Options::default() });
        (findings, Some("Skill".to_owned()), skill, object, root)
    } else {
        let checked = manifest(document);
        (checked.findings, checked.kind, checked.skill, checked.object, checked.root)
    };
    if let Some(kind) = kind {
        findings.extend(check::by_rules(&kind, &object, &root));
    }
    if let Some(skill) = skill {
        findings.extend(check::by_engine(&skill.spec, &root));
    }
    findings
}
