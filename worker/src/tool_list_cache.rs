//! Caches the tool list of an MCP server for a minute, for all workers of a skill directory
//! (`docs/explanation/engine.md`, section 4).

use crate::shared_cache::{Kind, SharedCache};
use bloomery_crds::Digest;
use bloomery_engine::tool::ListedTool;
use bloomery_journal::files::Disk;
use serde::Serialize;
use serde_json::json;

/// The version of the entries' format.
const VERSION: u32 = 1;

/// The cached list of one server.
#[derive(Debug)]
pub struct ToolListCache {
    cache: SharedCache,
    key: Digest,
}

impl ToolListCache {
    /// Creates the cached list of the server at `url`. `server` has the other settings that identify the server, including the names of
    /// credentials.
    pub fn new(cache: SharedCache, url: &str, server: &impl Serialize) -> Self {
        let key = Digest::of_value(&json!({"version": VERSION, "url": url, "server": server}));
        Self { cache, key }
    }
}

impl bloomery_mcp::ToolListCache for ToolListCache {
    fn load(&self) -> Option<Vec<ListedTool>> {
        self.cache.get(&Disk, Kind::Catalogue, &self.key)
    }

    fn store(&self, tools: &[ListedTool]) {
        self.cache.put(&Disk, Kind::Catalogue, &self.key, &tools);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shared_cache::DIR;
    use bloomery_mcp::ToolListCache as _;

    #[test]
    fn a_list_is_found_by_its_server_and_ignored_if_it_cannot_be_read() {
        let memory = tempfile::tempdir().unwrap();
        let cache = |server| ToolListCache::new(SharedCache::new(memory.path(), "uid-1"), "http://orders/mcp", &server);
        let tools = vec![ListedTool { name: "get".into(), ..ListedTool::default() }];
        cache("a").store(&tools);
        assert_eq!(cache("a").load(), Some(tools));
        assert_eq!(cache("b").load(), None);
        let entries: Vec<_> =
            std::fs::read_dir(memory.path().join(DIR)).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(entries.len(), 1);
        std::fs::write(&entries[0], "[{").unwrap();
        assert_eq!(cache("a").load(), None);
    }
}
