//! Drift: a server changes its tools while a Job runs (`docs/explanation/design.md`, section 6). The definitions that were fixed
//! at the beginning stay valid.

use crate::event::Event;
use crate::run::Run;
use crate::tool::{CatalogueTool, ListedTool, ToolSource};
use bloomery_crds::scripts;
use bloomery_crds::text::bounded;
use bloomery_crds::tool_pins::ToolChange;
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
    /// The tool differs from the one that is pinned for the Skill.
    Unpinned,
}

impl Drift {
    /// Returns the reason to deny a call of the tool.
    pub fn objection(self) -> &'static str {
        match self {
            Self::Changed => "the server has changed its definition since the Job began",
            Self::Missing => "the server does not list it any more",
            Self::Unpinned => "it differs from the tool that is pinned for the Skill, and a person has to accept it",
        }
    }

    /// Returns the remark about a tool. `change` is what differs from the pinned tool.
    fn remark(self, tool: &str, change: &str) -> String {
        let tool = bounded(tool, MAX_NAME_BYTES);
        match self {
            Self::Changed => {
                format!("The MCP server has changed the tool {tool} since the Job began: its calls are denied.")
            }
            Self::Missing => format!("The MCP server does not list the tool {tool} any more: its calls are denied."),
            Self::Unpinned => format!("Denied tool {tool}: {change} since the tools were pinned."),
        }
    }
}

/// The tools with drift, by the server's names.
#[derive(Debug, Default)]
pub(super) struct Drifted {
    tools: BTreeMap<String, Drift>,
    /// What differs from the pins, by the server's names.
    unpinned: BTreeMap<String, String>,
}

impl Drifted {
    pub(super) fn add(&mut self, changed: &[String], missing: &[String]) {
        self.tools.extend(missing.iter().map(|tool| (tool.clone(), Drift::Missing)));
        self.tools.extend(changed.iter().map(|tool| (tool.clone(), Drift::Changed)));
    }

    pub(super) fn add_unpinned(&mut self, changes: &[ToolChange]) {
        self.tools.extend(changes.iter().map(|change| (change.tool.clone(), Drift::Unpinned)));
        self.unpinned.extend(changes.iter().map(|change| (change.tool.clone(), change.change.clone())));
    }

    pub(super) fn get(&self, name: &str) -> Option<Drift> {
        self.tools.get(name).copied()
    }

    pub(super) fn remarks(&self) -> impl Iterator<Item = String> {
        let change_of = |tool: &str| self.unpinned.get(tool).map_or("", String::as_str);
        self.tools.iter().map(move |(tool, drift)| drift.remark(tool, change_of(tool)))
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
        for tool in tools.iter().filter(is_server_tool).filter(|tool| !self.tools.contains_key(&tool.name)) {
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

/// Returns the event of the listed tools that differ from the pins of the Skill. Scripts have no pins, because they are part of the
/// revision.
pub fn unpinned_tools(run: &Run, listed: &[ListedTool]) -> Option<Event> {
    let scripts = scripts::tools_of(&run.skill);
    let of_server = listed.iter().filter(|tool| !scripts.contains_key(&tool.name));
    let mut tools = run.pins.as_ref()?.differences(of_server.map(ListedTool::pin).collect());
    // The server may have a tool with the name of a script, which is not used.
    tools.retain(|change| !scripts.contains_key(&change.tool));
    (!tools.is_empty()).then_some(Event::CatalogueUnpinned { tools })
}

#[cfg(test)]
mod tests;
