//! The check of a document by everything that needs neither a cluster nor an engine.

use crate::checked::Checked;
use crate::document::{Document, Form};
use crate::import::{Options, import};
use crate::manifest::manifest;
use crate::rules;

/// Checks a document against its schema and the rules in CEL that the API server applies, whatever its form.
///
/// `options` only concern documents of the dialect. The findings of the rules come after those of the schema.
pub fn check(document: &Document, options: &Options) -> Checked {
    let mut checked = match document.form() {
        Form::Dialect => import(document, options),
        Form::Manifest | Form::Foreign => manifest(document),
    };
    let broken = rules::findings(&checked);
    checked.findings.extend(broken);
    checked
}
