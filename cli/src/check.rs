//! The full check of a document: its schema, the rules of its kind, and the lint of the engine.

use bloomery_engine::lint;
use bloomery_skills::{CheckedDocument, Document, Draft, Finding, ImportOptions, Severity, check};

/// Checks a document, which is a manifest or is written in the older dialect.
pub fn check_document(document: &Document, options: &ImportOptions) -> CheckedDocument {
    let mut checked = check(document, options);
    let of_engine = checked.draft.as_ref().map(engine_findings).unwrap_or_default();
    checked.findings.extend(of_engine);
    checked
}

/// Runs the engine's lint on a draft. Converts its findings, which have API paths, to findings with places in the document.
/// Drops findings that may only be consequences of a value that could not be read.
fn engine_findings(draft: &Draft) -> Vec<Finding> {
    let to_severity = |severity| match severity {
        lint::Severity::Error => Severity::Error,
        lint::Severity::Warning => Severity::Warning,
    };
    let findings = lint::skill(&draft.spec).into_iter().filter(|finding| !draft.is_doubtful(&finding.path));
    let with_place = |lint::Finding { severity, path, message, hint }: lint::Finding| {
        let finding = Finding::at_api_path(&draft.root, &path, to_severity(severity), message);
        Finding { hint, ..finding }
    };
    findings.map(with_place).collect()
}
