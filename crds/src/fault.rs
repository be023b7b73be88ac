//! A fault of a Skill that the operator and `bloomery lint` find with the same function.

/// A fault of a Skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// The field.
    pub path: String,
    /// The problem and the remedy, as the rest of a sentence that begins with the path.
    pub message: String,
}
