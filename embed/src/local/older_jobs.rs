//! Jobs of an older memory, which the runtime before Bloomery wrote. An older memory has one directory with the jobs of all Skills. A
//! memory of Bloomery has one directory for each Skill.

use crate::local::{DEFAULT_MEMORY, SKILL_FILE};
use crate::text;
pub use bloomery_worker::migration::older_job::{MAX_JOB_BYTES, OLDER_JOBS_DIR, skill_of};
use std::path::{Path, PathBuf};

/// Returns whether an older job names this Skill.
pub fn belongs_to(job: &Path, skill: &str) -> bool {
    skill_of(job).is_ok_and(|named| named.as_deref() == Some(skill))
}

/// Returns whether a directory is the one in an older memory that holds the jobs of all Skills. Its name is [`OLDER_JOBS_DIR`], and it
/// has no Skill file.
pub fn is_older_jobs_dir(dir: &Path) -> bool {
    dir.file_name().is_some_and(|name| name == OLDER_JOBS_DIR) && !dir.join(SKILL_FILE).exists()
}

/// Returns instructions to move older jobs out of the directory `from`, so that a Skill of the same name can use the directory.
pub fn rename_hint(memory: &Path, from: &str) -> String {
    let quoted = |path: PathBuf| text::shell_quoted(&path.display().to_string());
    let older = format!("{from}-older");
    let memory_option = if memory == Path::new(DEFAULT_MEMORY) {
        String::new()
    } else {
        format!(" --memory {}", quoted(memory.to_owned()))
    };
    format!(
        "rename the directory and migrate its jobs from there: mv {} {} && bloomery migrate{memory_option} --from {} --apply. Or, \
         if all these jobs belong to the Skill {from}, store the file of this Skill as {}",
        quoted(memory.join(from)),
        quoted(memory.join(&older)),
        text::shell_quoted(&older),
        memory.join(from).join(SKILL_FILE).display()
    )
}
