//! Drift: a server changes its tools while a Job runs (`docs/explanation/design.md`, section 6). The definitions that were fixed
//! at the beginning stay valid.

use crate::event::Event;
use crate::tool::{CatalogueTool, ListedTool, ToolSource};
use bloomery_crds::text::bounded;
use std::collections::BTreeMap;

/// The most new tools that an event names.
const MAX_ADDED_TOOLS: usize = 32;

/// The longest name of a tool in an event or a remark, in bytes.
const MAX_NAME_BYTES: usize = 128;

/// The difference between a tool and its fixed definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drift {
    /// The server lists another definition now.
    Changed,
    /// The server no longer lists the tool.
    Missing,
}

impl Drift {
    /// Returns the reason to deny a call of the tool.
    pub fn objection(self) -> &'static str {
        match self {
            Self::Changed => "the server has changed its definition since the Job began",
            Self::Missing => "the server does not list it any more",
        }
    }

    fn remark(self, tool: &str) -> String {
        let tool = bounded(tool, MAX_NAME_BYTES);
        match self {
            Self::Changed => {
                format!("The MCP server has changed the tool {tool} since the Job began: its calls are denied.")
            }
            Self::Missing => format!("The MCP server does not list the tool {tool} any more: its calls are denied."),
        }
    }
}

/// The tools with drift, by the server's names.
#[derive(Debug, Default)]
pub(super) struct Drifted(BTreeMap<String, Drift>);

impl Drifted {
    pub(super) fn add(&mut self, changed: &[String], missing: &[String]) {
        self.0.extend(missing.iter().map(|tool| (tool.clone(), Drift::Missing)));
        self.0.extend(changed.iter().map(|tool| (tool.clone(), Drift::Changed)));
    }

    pub(super) fn get(&self, name: &str) -> Option<Drift> {
        self.0.get(name).copied()
    }

    pub(super) fn remarks(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(tool, drift)| drift.remark(tool))
    }

    /// Compares a listing with the fixed tools. A tool that is listed twice counts as changed. New tools alone make no event,
    /// because the Job does not use them.
    pub(super) fn compare(&self, tools: &[CatalogueTool], listed: &[ListedTool]) -> Option<Event> {
        let is_server_tool = |tool: &&CatalogueTool| tool.source == ToolSource::Server;
        let mut listed_by_name: BTreeMap<&str, Vec<&ListedTool>> = BTreeMap::new();
        for tool in listed {
            listed_by_name.entry(&tool.name).or_default().push(tool);
        }
        let (mut changed, mut missing) = (Vec::new(), Vec::new());
        for tool in tools.iter().filter(is_server_tool).filter(|tool| !self.0.contains_key(&tool.name)) {
            match listed_by_name.get(tool.name.as_str()).map(Vec::as_slice) {
                None => missing.push(tool.name.clone()),
                Some([listed]) if tool.matches(listed) => {}
                Some(_) => changed.push(tool.name.clone()),
            }
        }
        if changed.is_empty() && missing.is_empty() {
            return None;
        }
        let is_new = |name: &&str| !tools.iter().filter(is_server_tool).any(|tool| tool.name == **name);
        let added = listed_by_name.into_keys().filter(is_new).take(MAX_ADDED_TOOLS);
        let added = added.map(|name| bounded(name, MAX_NAME_BYTES)).collect();
        Some(Event::CatalogueDrifted { changed, missing, added })
    }
}

#[cfg(test)]
mod tests;
