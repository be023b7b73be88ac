//! The interface of a cache for lists of tools.

use bloomery_engine::tool::ListedTool;

/// Caches the tools of one server for a short time. All workers of one skill directory share the cache.
pub trait ToolListCache: std::fmt::Debug + Send + Sync {
    /// Returns the list if it is recent.
    fn load(&self) -> Option<Vec<ListedTool>>;

    /// Stores a list. A list that cannot be stored is requested again later, so this returns no error.
    fn store(&self, tools: &[ListedTool]);
}
