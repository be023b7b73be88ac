//! A difference between the original and the polished text.

/// An item that occurs more often in one text than in the other.
pub(super) struct Difference {
    /// The item, as a noun phrase.
    pub item: String,
    /// The number of occurrences in the original.
    pub before: usize,
    /// The number of occurrences in the polished text.
    pub after: usize,
}
