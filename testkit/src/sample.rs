//! The selection of the cases that a long test runs.

/// The variable with which long tests run every case (`make test-all`).
const EVERY_CASE: &str = "BLOOMERY_EVERY_CASE";

/// The usual distance. The file operations of a segment are four or five, so the sampled cases reach each of them, and a call that is
/// interrupted for as long as it takes to write a segment is among them.
const DISTANCE: usize = 3;

/// Returns the distance between the cases that a test of every file operation runs. With `BLOOMERY_EVERY_CASE` it is 1.
#[must_use]
pub fn distance() -> usize {
    if std::env::var_os(EVERY_CASE).is_some() { 1 } else { DISTANCE }
}
