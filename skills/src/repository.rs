//! Converts the skills of a repository to Skills: directories with a `skill.json`, or with the `SKILL.md` of an Agent Skill.
//!
//! A [`Catalogue`] has the names of all skills of a repository, and resolves the names of subskills. [`convert`] converts one skill.
//! [`cycles`] finds the skills that invoke each other in a circle. So a caller needs the files of only one skill at a time.

mod agent_skill;
mod catalogue;
mod cycles;
mod directory;
mod export;
mod features;
mod json;
mod limits;
mod notes;
mod options;
mod parts;
mod script_files;
mod scripts;
mod skill_json;

pub use catalogue::{Catalogue, Format, FoundSkill};
pub use cycles::{Invoker, Subskill, cycles};
pub use directory::{FileFindings, ReadFault, SkillDirectory};
pub use export::{ExportedSkill, export};
pub use notes::memory_notes;
pub use options::{Os, RepositoryOptions};
pub use parts::ConvertedSkill;

use crate::rules;

/// Converts a skill of the repository. All faults are reported at once.
pub fn convert(
    skill: &FoundSkill,
    directory: &impl SkillDirectory,
    catalogue: &Catalogue,
    options: &RepositoryOptions,
) -> ConvertedSkill {
    let mut converted = match skill.format {
        Format::SkillJson => skill_json::convert(&skill.path, directory, catalogue, options),
        Format::AgentSkill => agent_skill::convert(&skill.path, directory, catalogue, options),
    };
    let violations = rules::findings(&converted.checked);
    converted.checked.findings.extend(violations);
    converted
}

#[cfg(test)]
mod tests;
