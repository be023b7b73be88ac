//! Tools that change while a Job runs (`design.md`, section 6): what was listed when they were fixed holds.

use super::{CallState, Conversation, Settlement, calls};
use crate::event::Event;
use crate::tool::{CatalogueTool, ListedTool, ToolSource};
use bloomery_crds::text::bounded;
use std::collections::BTreeMap;

/// How many tools that are new are named in an event, and how much of each name.
const MAX_ADDED: usize = 32;
const MAX_NAME: usize = 128;

/// How a tool differs from what it was when the tools were fixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Drift {
    /// Its server says something else of it now.
    Changed,
    /// Its server does not list it any more.
    Missing,
}

impl Drift {
    /// What is told of a call of such a tool.
    pub fn objection(self) -> &'static str {
        match self {
            Self::Changed => "the server has changed its definition since the Job began",
            Self::Missing => "the server does not list it any more",
        }
    }

    /// What people read of such a tool.
    fn remark(self, tool: &str) -> String {
        let tool = bounded(tool, MAX_NAME);
        match self {
            Self::Changed => {
                format!("The MCP server has changed the tool {tool} since the Job began: its calls are denied.")
            }
            Self::Missing => format!("The MCP server does not list the tool {tool} any more: its calls are denied."),
        }
    }
}

impl Conversation {
    /// The event that a listing makes, where it differs from the tools that were fixed, and from what is known of that.
    pub fn drift(&self, listed: &[ListedTool]) -> Option<Event> {
        let tools = self.tools.as_ref()?;
        let fixed = |tool: &&CatalogueTool| tool.source == ToolSource::Server;
        let mut now: BTreeMap<&str, Vec<&ListedTool>> = BTreeMap::new();
        for tool in listed {
            now.entry(&tool.name).or_default().push(tool);
        }
        let (mut changed, mut missing) = (Vec::new(), Vec::new());
        for tool in tools.iter().filter(fixed).filter(|tool| !self.drifted.contains_key(&tool.name)) {
            match now.get(tool.name.as_str()).map(Vec::as_slice) {
                None => missing.push(tool.name.clone()),
                Some([listed]) if tool.is_as(listed) => {}
                Some(_) => changed.push(tool.name.clone()),
            }
        }
        // New tools alone change nothing for the Job.
        if changed.is_empty() && missing.is_empty() {
            return None;
        }
        let is_new = |name: &&str| !tools.iter().filter(fixed).any(|tool| tool.name == **name);
        let added = now.into_keys().filter(is_new).take(MAX_ADDED).map(|name| bounded(name, MAX_NAME)).collect();
        Some(Event::CatalogueDrifted { changed, missing, added })
    }

    /// How a tool differs from what it was, by its server's name.
    pub fn drift_of(&self, tool: &str) -> Option<Drift> {
        self.drifted.get(tool).copied()
    }

    /// What people are told of the tools that differ.
    pub fn drift_remarks(&self) -> impl Iterator<Item = String> {
        self.drifted.iter().map(|(tool, drift)| drift.remark(tool))
    }

    pub(super) fn drifted(&mut self, changed: &[String], missing: &[String]) {
        self.drifted.extend(missing.iter().map(|tool| (tool.clone(), Drift::Missing)));
        self.drifted.extend(changed.iter().map(|tool| (tool.clone(), Drift::Changed)));
        let mut lost = Vec::new();
        for at in 0..self.calls.len() {
            let Some(call) = self.calls.get(at) else { continue };
            let Some(tool) = self.tool(&call.tool).filter(|tool| self.drifted.contains_key(&tool.name)) else {
                continue;
            };
            let may_have_happened = call.state == CallState::Retry && !tool.read_only;
            let is_allowed = matches!(call.state, CallState::Ruled | CallState::Retry);
            let Some(call) = self.calls.get_mut(at).filter(|_| is_allowed) else { continue };
            if may_have_happened {
                lost.push(call.id.clone());
            } else {
                // What was allowed was allowed for the tool as it was.
                call.state = CallState::Asked;
            }
        }
        for call in lost {
            self.settle(&call, Settlement::Indeterminate, calls::NOT_REPEATED);
        }
    }
}
