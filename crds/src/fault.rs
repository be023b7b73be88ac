//! A fault of a Skill that the operator and `bloomery lint` find with the same function.

use std::fmt;

/// A fault of a Skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The field.
    pub path: String,
    /// The problem and the remedy, as the rest of a sentence that begins with the path.
    pub message: String,
}

/// Writes a sentence that begins with the path of the field.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}.", self.path, self.message)
    }
}
