//! The tool selection: selects the tools that the model sees, if there are more than a prompt should hold.
//!
//! A selection only hides tools. If the model calls a hidden tool, the same gates rule on the call.

mod next;
mod prompt;
mod state;

pub(crate) use next::next;
pub use next::{cache_key, from_cache};
pub(crate) use state::Selection;
