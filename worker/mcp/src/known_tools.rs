//! The tool definitions that each call of a session is checked against.

use bloomery_crds::Digest;
use bloomery_engine::catalogue::Drift;
use bloomery_engine::step::ToolCall;
use bloomery_engine::tool::ListedTool;
use std::collections::BTreeMap;

/// The tools of a session.
#[derive(Debug, Default)]
pub(crate) struct KnownTools {
    /// The possible digests of each tool's latest definition, by the name of the tool ([`ListedTool::possible_digests`]). A name that
    /// was listed twice has `None`. The whole map is `None` until the tools were listed in this session.
    definitions: Option<BTreeMap<String, Option<[Digest; 2]>>>,
    /// Whether the tools came from the cache. Cached tools are recent, so they can be called without another list.
    is_cached: bool,
}

impl KnownTools {
    /// Creates the record of tools that came from the cache.
    pub(crate) fn cached() -> Self {
        Self { definitions: None, is_cached: true }
    }

    /// Creates the record of tools that were listed in this session.
    pub(crate) fn listed(tools: &[ListedTool]) -> Self {
        let mut definitions = BTreeMap::new();
        for tool in tools {
            let own = Some(tool.possible_digests());
            definitions.entry(tool.name.clone()).and_modify(|first| *first = None).or_insert(own);
        }
        Self { definitions: Some(definitions), is_cached: false }
    }

    /// Returns whether the tools were listed in this session.
    pub(crate) fn are_listed(&self) -> bool {
        self.definitions.is_some()
    }

    /// Returns whether the tools came from the cache.
    pub(crate) fn are_cached(&self) -> bool {
        self.is_cached
    }

    /// Returns the names that were listed more than once.
    pub(crate) fn duplicates(&self) -> impl Iterator<Item = &str> {
        self.definitions.iter().flatten().filter(|(_, definition)| definition.is_none()).map(|(name, _)| name.as_str())
    }

    /// Returns the reason that a call must not be sent: its tool changed after the Job began. Returns `None` if the tool did not change,
    /// or if the tools were not listed in this session.
    pub(crate) fn objection(&self, call: &ToolCall<'_>) -> Option<String> {
        let drift = match self.definitions.as_ref()?.get(call.tool) {
            Some(Some(definitions)) if definitions.contains(call.definition) => return None,
            Some(_) => Drift::Changed,
            None => Drift::Missing,
        };
        Some(format!("The call was not sent, because its tool has changed: {}.", drift.objection()))
    }
}
