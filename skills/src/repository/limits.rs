//! The sizes that the schema of a Skill allows.

use crate::schema::property;
use crate::schema::spec::{Schema, spec_schema_of};

/// Returns the largest number of characters of the text at a path below `spec`.
pub(super) fn max_chars(path: &[&str]) -> usize {
    to_usize(schema_at(path).and_then(|schema| schema.max_length))
}

/// Returns the largest number of entries of the map at a path below `spec`.
pub(super) fn max_entries(path: &[&str]) -> usize {
    to_usize(schema_at(path).and_then(|schema| schema.max_properties))
}

fn schema_at(path: &[&str]) -> Option<&'static Schema> {
    path.iter().try_fold(spec_schema_of("Skill")?, |schema, name| property(schema, name))
}

fn to_usize(limit: Option<i64>) -> usize {
    limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX)
}
