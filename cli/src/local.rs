//! The memory on this machine: one directory for each Skill, which holds the logs and records of its Jobs.
//!
//! The commands that need no cluster (`run`, `get`, `events`, `migrate`) stand on these modules.

pub mod job_state;
pub mod memory;
pub mod memory_error;
pub mod older_jobs;
pub mod owner;
pub mod run_document;
pub mod skill_directory;
pub mod writer;

/// The Skill of a Job that names none (seed 000).
pub const DEFAULT_SKILL: &str = "sw-dev-agent";

/// The directory of the memory where `--memory` is not given.
pub const DEFAULT_MEMORY: &str = "memory";

/// The file of a Skill in its directory.
pub const SKILL_FILE: &str = "skill.yaml";
