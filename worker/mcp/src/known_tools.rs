//! The definitions of the tools in a session, against which each call is checked.

use bloomery_crds::Digest;
use bloomery_engine::catalogue::Drift;
use bloomery_engine::step::ToolCall;
use bloomery_engine::tool::ListedTool;
use std::collections::BTreeMap;

/// The tools of a session.
#[derive(Debug, Default)]
pub(crate) struct KnownTools {
    /// The digests of each tool's latest definition; `None` for a name that was listed twice.
    definitions: Option<BTreeMap<String, Option<[Digest; 2]>>>,
    /// The tools came from the cache, and are recent enough to call them without listing them again.
    is_cached: bool,
}

impl KnownTools {
    /// The tools were recently read from the cache.
    pub(crate) fn cached() -> Self {
        Self { definitions: None, is_cached: true }
    }

    /// The tools were listed in this session.
    pub(crate) fn listed(tools: &[ListedTool]) -> Self {
        let mut definitions = BTreeMap::new();
        for tool in tools {
            let own = Some(tool.definitions());
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

    /// Returns why a call must not be sent: its tool changed after the Job began.
    pub(crate) fn objection(&self, call: &ToolCall<'_>) -> Option<String> {
        let drift = match self.definitions.as_ref()?.get(call.tool) {
            Some(Some(definitions)) if definitions.contains(call.definition) => return None,
            Some(_) => Drift::Changed,
            None => Drift::Missing,
        };
        Some(format!("The call was not sent, because the tool is not what it was: {}.", drift.objection()))
    }
}
