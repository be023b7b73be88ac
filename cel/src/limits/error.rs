//! The limits of a condition, and the errors of its tokens.

/// The longest condition, in bytes.
pub const MAX_LENGTH_BYTES: usize = 1024;

/// The greatest depth of nested and chained brackets, operators, selections and signs.
pub const MAX_DEPTH: usize = 24;

/// The reason to refuse a condition before it is parsed. Positions are byte offsets.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The condition has no token.
    #[error("the condition is empty")]
    Empty,
    /// The text is longer than [`MAX_LENGTH_BYTES`].
    #[error("the condition has {length} bytes, and at most {MAX_LENGTH_BYTES} are allowed")]
    TooLong {
        /// The length in bytes.
        length: usize,
    },
    /// The nesting is deeper than [`MAX_DEPTH`].
    #[error("at byte {at} the condition is nested or chained deeper than {MAX_DEPTH}: split it with && or ||")]
    TooDeep {
        /// The position at which the limit was exceeded.
        at: usize,
    },
    /// A string does not end, or has an invalid escape.
    #[error("the string at byte {at} has no end, or an escape that CEL does not know")]
    BadString {
        /// The beginning of the string.
        at: usize,
    },
    /// A number has an invalid form, or a name follows it without a space.
    #[error("the number at byte {at} is not a number of CEL")]
    BadNumber {
        /// The beginning of the number.
        at: usize,
    },
    /// An opening or closing bracket has no partner.
    #[error("the bracket {bracket:?} at byte {at} has no partner")]
    Unbalanced {
        /// The bracket.
        bracket: char,
        /// The position of the bracket.
        at: usize,
    },
    /// The characters of a comparison are in the wrong order.
    #[error("{operator:?} at byte {at} is not an operator of CEL: write {write}")]
    Swapped {
        /// The characters.
        operator: &'static str,
        /// The operator of CEL.
        write: &'static str,
        /// The position of the first character.
        at: usize,
    },
    /// No token begins with this character.
    #[error("the character {character:?} at byte {at} is not part of CEL{}", if *character == '=' { ": write == to compare" } else { "" })]
    Character {
        /// The character.
        character: char,
        /// The position of the character.
        at: usize,
    },
}
