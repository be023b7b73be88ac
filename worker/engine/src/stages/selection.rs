//! The tool selection (seed 000): the tools that the model sees, where there are more than a prompt should hold.
//!
//! A selection only hides tools; it gives no right. A hidden tool that is called all the same passes the same gates.

mod next;
mod prompt;
mod state;

pub(crate) use next::next;
pub use next::{cache_key, from_cache};
pub(crate) use state::Selection;
