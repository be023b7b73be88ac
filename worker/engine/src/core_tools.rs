//! The core tools, which the worker provides itself (`docs/explanation/engine.md`, section 3). Each family of tools has a module.
//!
//! A family offers a Job the tools for the resources that the Job binds. The worker's module `tools` performs the calls.

mod definition;
pub mod files;
pub mod focus;
pub mod http;
pub mod memory;
pub mod people;
pub mod skill_texts;
pub mod use_skill;
pub mod workflow;

pub use bloomery_crds::core_tools::NAMES;
pub use focus::FOCUS_READ;
pub use memory::{MEMORY_READ, MEMORY_WRITE};
pub use people::ASK_USER;
pub use skill_texts::{APPLY_FEATURE, SKILL_DOC};
pub use use_skill::USE_SKILL;
pub use workflow::SUBGOAL_DONE;

use crate::run::Run;
use crate::tool::{CatalogueTool, ListedTool, ToolSource};
use crate::tool_policy::refusal;

/// The names that only core tools can have: a server's tool with such a name is ignored.
const RESERVED: [&str; 6] = [ASK_USER, USE_SKILL, FOCUS_READ, SUBGOAL_DONE, SKILL_DOC, APPLY_FEATURE];

/// The core tools whose results are no evidence: they show notes of agents, texts of the Skill, or a result that the model has read
/// before.
const WITHOUT_EVIDENCE: [&str; 6] = [FOCUS_READ, MEMORY_READ, MEMORY_WRITE, SUBGOAL_DONE, SKILL_DOC, APPLY_FEATURE];

/// Returns whether a name is reserved for core tools.
pub fn is_reserved(name: &str) -> bool {
    RESERVED.contains(&name)
}

/// Returns whether a name is that of a core tool that acts only on the conversation.
pub fn acts_on_conversation(name: &str) -> bool {
    is_reserved(name) && name != USE_SKILL
}

/// Returns whether a completed call of the tool is evidence: its result can show something new
/// (`docs/explanation/engine.md`, section 3).
pub fn gives_evidence(tool: &CatalogueTool) -> bool {
    tool.source == ToolSource::Server || !WITHOUT_EVIDENCE.contains(&tool.name.as_str())
}

/// Returns the core tools of a Job whose server lists `listed`. Tools that the policy blocks are hidden.
///
/// A server's tool replaces a core tool of the same name, unless the name is reserved. It does so even if the policy blocks the
/// server's tool: a call of the server's tool must not reach the core tool.
pub fn offered(run: &Run, listed: &[ListedTool]) -> Vec<CatalogueTool> {
    let mut tools = workflow::offered(run);
    tools.extend(files::offered(run));
    tools.extend(http::offered(run));
    tools.extend(memory::offered(run));
    tools.extend(skill_texts::offered(run));
    tools.extend(use_skill::offered(run));
    tools.extend(focus::offered(listed, &tools));
    tools.extend(people::offered(run));
    let is_overridden = |name: &str| !is_reserved(name) && listed.iter().any(|tool| tool.name == name);
    let offered = tools.into_iter().filter(|tool| !is_overridden(&tool.name));
    offered
        .map(|tool| CatalogueTool { visible: refusal(run, ToolSource::Core, &tool.name).is_none(), ..tool })
        .collect()
}

/// Builds the definition of a core tool.
type Builder = fn() -> CatalogueTool;

/// The name of each core tool, and its definition for rules: the schema names no resource, no method and no feature, and accepts each.
const DEFINITIONS: [(&str, Builder); 16] = [
    (SUBGOAL_DONE, workflow::subgoal_done),
    (FOCUS_READ, focus::focus_read),
    (ASK_USER, people::ask_user),
    (USE_SKILL, use_skill::use_skill),
    (files::READ_FILE, || files::read_file(&[])),
    (files::LIST_FILES, || files::list_files(&[])),
    (files::SEARCH_FILES, || files::search_files(&[])),
    (files::WRITE_FILE, || files::write_file(&[])),
    (files::EDIT_FILE, || files::edit_file(&[])),
    (files::APPLY_PATCH, || files::apply_patch(&[])),
    (http::HTTP_GET, || http::http_get(&[])),
    (http::HTTP_REQUEST, || http::http_request(&[])),
    (MEMORY_READ, memory::memory_read),
    (MEMORY_WRITE, memory::memory_write),
    (SKILL_DOC, skill_texts::skill_doc),
    (APPLY_FEATURE, || skill_texts::apply_feature(&[])),
];

/// Returns the definitions of the core tools whose name `is_wanted` accepts, including those for resources that the Job does not bind. The
/// schemas name no resource, no method and no feature, and accept each.
pub fn definitions(is_wanted: impl Fn(&str) -> bool) -> impl Iterator<Item = CatalogueTool> {
    DEFINITIONS.into_iter().filter(move |(name, _)| is_wanted(name)).map(|(_, definition)| definition())
}

#[cfg(test)]
mod tests;
