//! Figures that people want to see even of a run in which nothing failed.

use std::io::Write;

/// Prints a figure past the test runner, which keeps what is printed by tests that pass.
pub fn figure(what: &str, value: impl std::fmt::Display) {
    // A closed stderr is no failure of the story.
    let _ = writeln!(std::io::stderr(), "figure: {what}: {value}");
}
