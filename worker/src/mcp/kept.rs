//! The catalogue cache: what a server listed, for a minute, for all workers of the slag (seed 000; `docs/explanation/engine.md`, section 4).

use super::MAX_BODY;
use super::listing::{MAX_TOOLS, bytes};
use crate::recent::{Kind, Recent};
use bloomery_crds::Digest;
use bloomery_engine::tool::ListedTool;
use bloomery_journal::files::Disk;
use serde::Serialize;
use serde_json::json;

/// What an entry is, for a version that may write another.
const VERSION: u32 = 1;

/// The entry of one server, as one identity sees it.
#[derive(Debug)]
pub(super) struct Kept {
    recent: Recent,
    key: Digest,
}

impl Kept {
    /// The entry of the server at `url`; `server` is whatever else makes it this one, credentials by name included.
    pub(super) fn new(recent: Recent, url: &str, server: &impl Serialize) -> Self {
        let key = Digest::of_value(&json!({"version": VERSION, "url": url, "server": server}));
        Self { recent, key }
    }

    /// The list, where it is young and within the bounds of one that comes from the server.
    pub(super) fn read(&self) -> Option<Vec<ListedTool>> {
        let tools: Vec<ListedTool> = self.recent.get(&Disk, Kind::Catalogue, &self.key)?;
        (tools.len() <= MAX_TOOLS && bytes(&tools) <= MAX_BODY).then_some(tools)
    }

    /// Keeps a list.
    pub(super) fn write(&self, tools: &[ListedTool]) {
        self.recent.put(&Disk, Kind::Catalogue, &self.key, &tools);
    }
}
