//! The memory on this machine. It has one directory for each Skill, with the logs and records of the Jobs of that Skill.
//!
//! The commands that need no cluster (`run`, `get`, `events`, `migrate`) use these modules too.

pub mod drive_mark;
pub mod job_state;
pub mod key;
pub mod memory;
pub mod memory_error;
pub mod older_jobs;
pub mod owner;
pub mod run_document;
pub mod skill_directory;
pub mod writer;

use bloomery_crds::v1alpha1::JobSpec;

/// The Skill of a Job that names no Skill.
pub const DEFAULT_SKILL: &str = JobSpec::DEFAULT_SKILL;

/// The directory of the memory of a command that names none.
pub const DEFAULT_MEMORY: &str = "memory";

/// The name of a Skill's file in the directory of the Skill.
pub const SKILL_FILE: &str = "skill.yaml";
