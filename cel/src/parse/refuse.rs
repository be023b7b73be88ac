//! The depth limit of the parser, and its errors.

use crate::error::Error;

/// The greatest depth of the tree, and of the parser's recursion. It is higher than the limit of [`check`](crate::check),
/// which is not called for the validation rules of the CRDs.
pub(super) const MAX_TREE_DEPTH: usize = 64;

/// The longest name in an error, in characters.
const MAX_SHOWN_NAME_CHARS: usize = 64;

pub(super) fn too_deep<T>() -> Result<T, Error> {
    unsupported("the condition is nested too deep")
}

pub(super) fn unsupported<T>(sentence: impl Into<String>) -> Result<T, Error> {
    Err(Error::Unsupported(sentence.into()))
}

pub(super) fn shorten(name: &str) -> String {
    name.chars().take(MAX_SHOWN_NAME_CHARS).collect()
}
