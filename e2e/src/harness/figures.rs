//! Measurements that are printed even if no story fails.

use std::io::Write;

/// Prints a measurement to stderr directly: the test runner captures the output of tests that pass.
pub fn figure(what: &str, value: impl std::fmt::Display) {
    // A closed stderr does not fail the story.
    let _ = writeln!(std::io::stderr(), "figure: {what}: {value}");
}
