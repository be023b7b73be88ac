//! The patterns of `matches()`.

use regex::{Regex, RegexBuilder};
use std::fmt;

/// The largest program of a pattern, in bytes. It bounds the memory and the time of each match.
const MAX_PROGRAM_BYTES: usize = 256 * 1024;

/// The greatest depth of brackets in a pattern.
const MAX_NESTING: u32 = 24;

/// A compiled regular expression. It matches in time that is linear in the text.
#[derive(Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// Compiles a pattern.
    ///
    /// # Errors
    /// A sentence, if the pattern is invalid or too large.
    pub(crate) fn compile(text: &str) -> Result<Self, String> {
        let mut builder = RegexBuilder::new(text);
        builder.size_limit(MAX_PROGRAM_BYTES).dfa_size_limit(MAX_PROGRAM_BYTES).nest_limit(MAX_NESTING);
        builder.build().map(Self).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => format!("its program is larger than {MAX_PROGRAM_BYTES} bytes"),
            // The other lines show the place in the pattern.
            other => other.to_string().lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned(),
        })
    }

    /// Returns the pattern as written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Returns whether the pattern matches a part of a text.
    pub(crate) fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.0.as_str(), f)
    }
}
