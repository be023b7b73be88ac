//! The directories of the bank and the limits on its notes.

/// The directory of the bank in a skill directory.
pub const DIR: &str = "memory-bank";

/// The directory of the longer notes, in the bank.
pub const DETAILS: &str = "details";

/// The advised limit on the words of a core note.
pub const ADVISED_CORE_WORDS: usize = 300;

/// The largest note that is written, in bytes.
pub const MAX_NOTE_BYTES: usize = 16 * 1024;

/// The limit on the number of notes in [`DETAILS`].
pub const MAX_DETAILS: usize = 64;

/// The limit on the size of all notes together, in bytes, checked at each write.
pub const MAX_BANK_BYTES: u64 = 512 * 1024;

/// The value of `expect` for a note that does not exist.
pub const NONE: &str = "none";
