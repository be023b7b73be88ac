//! All checks of a document that need neither a cluster nor the engine.

use crate::checked::Checked;
use crate::document::{Document, Form};
use crate::import::{Options, import};
use crate::manifest::manifest;
use crate::rules;

/// Checks a document of any form against its schema and the CEL rules of its kind.
///
/// `options` apply to documents of the dialect only. The findings of the rules follow those of the schema.
pub fn check(document: &Document, options: &Options) -> Checked {
    let mut checked = match document.form() {
        Form::Dialect => import(document, options),
        Form::Manifest | Form::Foreign => manifest(document),
    };
    let broken = rules::findings(&checked);
    checked.findings.extend(broken);
    checked
}
