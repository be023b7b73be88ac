//! The cache for the tools that an MCP server lists: kept for a minute, for all workers of a skill directory (seed 000;
//! `docs/explanation/engine.md`, section 4).

use crate::recent::{Kind, Recent};
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
    recent: Recent,
    key: Digest,
}

impl ToolListCache {
    /// The entry of the server at `url`. `server` is everything else that identifies it, including credentials by name.
    pub fn new(recent: Recent, url: &str, server: &impl Serialize) -> Self {
        let key = Digest::of_value(&json!({"version": VERSION, "url": url, "server": server}));
        Self { recent, key }
    }
}

impl bloomery_mcp::ToolListCache for ToolListCache {
    fn load(&self) -> Option<Vec<ListedTool>> {
        self.recent.get(&Disk, Kind::Catalogue, &self.key)
    }

    fn store(&self, tools: &[ListedTool]) {
        self.recent.put(&Disk, Kind::Catalogue, &self.key, &tools);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recent::DIR;
    use bloomery_mcp::ToolListCache as _;

    #[test]
    fn a_list_is_found_by_its_server_and_ignored_if_it_cannot_be_read() {
        let memory = tempfile::tempdir().unwrap();
        let cache = |server| ToolListCache::new(Recent::new(memory.path(), "uid-1"), "http://orders/mcp", &server);
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
