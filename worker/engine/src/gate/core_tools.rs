//! The tools that the worker brings itself (seed 000; `engine.md`, section 3), one file a family.
//!
//! A family says which tools it has for a Job: those whose resource the Job binds. Who answers them is the worker's
//! `tools`, by the same names.

pub mod files;
pub mod focus;
pub mod http;
pub mod memory;
pub mod people;
pub mod workflow;

pub use focus::FOCUS_READ;
pub use memory::{MEMORY_READ, MEMORY_WRITE};
pub use people::ASK_USER;
pub use workflow::SUBGOAL_DONE;

use crate::run::Run;
use crate::tool::{CatalogueTool, ListedTool, ToolSource};
use serde_json::Value;

use super::catalogue::core_refusal;

/// Names that mean something to the engine: a server that lists one of them does not get its calls.
const RESERVED: [&str; 4] = [ASK_USER, "use_skill", FOCUS_READ, SUBGOAL_DONE];

/// Core tools whose results show nothing new: what the agent notes, and what it reads again.
const NOTES: [&str; 4] = [FOCUS_READ, MEMORY_READ, MEMORY_WRITE, SUBGOAL_DONE];

/// Whether a name is never a server's.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// Whether a completed call of the tool shows something that was not known, and so is evidence (`engine.md`, section 3).
pub fn shows_something(tool: &CatalogueTool) -> bool {
    tool.source == ToolSource::Server || !NOTES.contains(&tool.name.as_str())
}

/// The core tools of a Job whose server lists `listed`, hidden where the policy blocks them.
///
/// A name of the server's is the server's, however often it lists it and whatever the policy says of it: a call that
/// was meant for one must not reach the other.
pub fn offered(run: &Run, listed: &[ListedTool]) -> Vec<CatalogueTool> {
    let mut tools = workflow::offered(run);
    tools.extend(files::offered(run));
    tools.extend(http::offered(run));
    tools.extend(memory::offered(run));
    tools.extend(focus::offered(listed, &tools));
    tools.extend(people::offered(run));
    let blocked = run.skill.policy.as_ref().and_then(|policy| policy.tools.as_ref());
    let is_overridden = |name: &str| !is_reserved(name) && listed.iter().any(|tool| tool.name == name);
    let offered = tools.into_iter().filter(|tool| !is_overridden(&tool.name));
    offered.map(|tool| CatalogueTool { visible: core_refusal(blocked, &tool.name).is_none(), ..tool }).collect()
}

/// Every name that a core tool may have, for those who look at a Skill before any Job binds anything.
pub fn names() -> Vec<&'static str> {
    [SUBGOAL_DONE, FOCUS_READ, ASK_USER]
        .into_iter()
        .chain(files::NAMES)
        .chain(http::NAMES)
        .chain(memory::NAMES)
        .collect()
}

/// What a call of a core tool changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It changes nothing.
    None,
    /// It changes something, and a second time nothing more.
    Once,
    /// It changes something each time.
    Each,
}

fn core_tool(name: &str, description: &str, input_schema: Value, effect: Effect) -> CatalogueTool {
    let tool = ListedTool {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema,
        ..ListedTool::default()
    };
    CatalogueTool {
        digest: tool.digest(),
        alias: tool.name.clone(),
        name: tool.name,
        description: tool.description,
        input_schema: tool.input_schema,
        output_schema: None,
        source: ToolSource::Core,
        read_only: effect == Effect::None,
        idempotent: effect != Effect::Each,
        visible: true,
    }
}

#[cfg(test)]
mod tests;
