//! A difference between the original and the polished text.

/// An item that occurs more often in one text than in the other.
pub(super) struct Difference {
    /// The item, as a noun phrase.
    pub what: String,
    /// How often it occurs in the original.
    pub before: usize,
    /// How often it occurs in the polished text.
    pub after: usize,
}
