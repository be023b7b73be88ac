//! The reasons to refuse a condition, and the limits among them.

/// The longest condition, in bytes.
pub const MAX_LENGTH: usize = 1024;

/// How deep brackets, operators, selections and unary signs may be nested or chained.
pub const MAX_DEPTH: usize = 24;

/// Why a condition is refused before it is parsed. Positions are bytes from its beginning.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// There is nothing to evaluate.
    #[error("the condition is empty")]
    Empty,
    /// The text is longer than [`MAX_LENGTH`].
    #[error("the condition has {length} bytes, and at most {MAX_LENGTH} are taken")]
    TooLong {
        /// Its length in bytes.
        length: usize,
    },
    /// Brackets, operators and selections nest deeper than [`MAX_DEPTH`].
    #[error("at byte {at} the condition is nested or chained deeper than {MAX_DEPTH}: split it with && or ||")]
    TooDeep {
        /// Where the limit was passed.
        at: usize,
    },
    /// A macro stands within another.
    #[error("{name}() stands within another macro: macros cannot be nested")]
    NestedMacro {
        /// The inner macro.
        name: String,
    },
    /// A string has no end on its line, or an escape in it is none of CEL's.
    #[error("the string at byte {at} has no end, or an escape that CEL does not know")]
    BadString {
        /// Where the string begins.
        at: usize,
    },
    /// A bracket is closed that was not opened, or the other way round.
    #[error("the bracket {bracket:?} at byte {at} has no partner")]
    Unbalanced {
        /// The bracket.
        bracket: char,
        /// Where it stands.
        at: usize,
    },
    /// A character that begins no token.
    #[error("the character {character:?} at byte {at} means nothing in CEL")]
    Character {
        /// The character.
        character: char,
        /// Where it stands.
        at: usize,
    },
}
