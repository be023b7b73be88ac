//! All checks of a document that need neither a cluster nor the engine.

use crate::checked::CheckedDocument;
use crate::document::{Document, Form};
use crate::import::{ImportOptions, import};
use crate::manifest::check_manifest;
use crate::rules;

/// Checks a document of any form against its schema and the CEL rules of its kind.
///
/// `options` apply to documents of the dialect only. The findings of the rules follow those of the schema.
pub fn check(document: &Document, options: &ImportOptions) -> CheckedDocument {
    let mut checked = match document.form() {
        Form::Dialect => import(document, options),
        Form::Manifest | Form::Foreign => check_manifest(document),
    };
    let violations = rules::findings(&checked);
    checked.findings.extend(violations);
    checked
}
