//! Checks of a document: by its schema, by its rules, and by the engine.

use bloomery_engine::lint;
use bloomery_skills::{Checked, Document, Draft, Finding, Options, Severity, check};

/// Checks a document: a manifest, or the older dialect.
pub fn check_document(document: &Document, options: &Options) -> Checked {
    let mut checked = check(document, options);
    let by_engine = checked.draft.as_ref().map(by_engine).unwrap_or_default();
    checked.findings.extend(by_engine);
    checked
}

/// Returns the findings of the engine's lint, with their places in the document.
fn by_engine(draft: &Draft) -> Vec<Finding> {
    let weight = |severity| match severity {
        lint::Severity::Error => Severity::Error,
        lint::Severity::Warning => Severity::Warning,
    };
    let findings = lint::skill(&draft.spec).into_iter().filter(|found| !draft.is_doubtful(&found.path));
    let located = |found: lint::Finding| {
        let finding = Finding::located(&draft.root, &found.path, weight(found.severity), found.message);
        Finding { hint: found.hint, ..finding }
    };
    findings.map(located).collect()
}
