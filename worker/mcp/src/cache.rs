//! The interface of a cache for lists of tools.

use bloomery_engine::tool::ListedTool;

/// Keeps the list of one server for a short time, for other workers of the same skill directory.
pub trait ToolListCache: std::fmt::Debug + Send + Sync {
    /// Returns the list, if it is recent.
    fn load(&self) -> Option<Vec<ListedTool>>;

    /// Stores a list. A failure is not an error: the list is requested again.
    fn store(&self, tools: &[ListedTool]);
}
