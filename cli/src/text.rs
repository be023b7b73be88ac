//! Messages on stderr.

use crate::error::PREFIX;
use crate::option_names::with_options_of_commands;
pub use bloomery_embed::text::{directory, escaped, sanitized_line, sanitized_lines, shell_quoted};

/// Prints a message to stderr.
pub fn inform(text: &str) {
    anstream::eprintln!("{}", sanitized_lines(&with_options_of_commands(text)));
}

/// Prints a message about the command itself to stderr, with the prefix of the program.
pub fn report(text: &str) {
    inform(&format!("{PREFIX}{text}"));
}
