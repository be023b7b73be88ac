//! A difference between the original and the rewritten text.

/// Returns whether the content changed, from the number of occurrences of an item in the original and in the rewritten text.
pub(super) type IsChange = fn(usize, usize) -> bool;

/// An item that occurs more often in one text than in the other.
pub(super) struct Difference {
    /// The item, as a noun phrase.
    pub item: String,
    /// The number of occurrences in the original.
    pub before: usize,
    /// The number of occurrences in the rewritten text.
    pub after: usize,
}
