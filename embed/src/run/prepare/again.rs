//! Prepares the Job of a repeated start.

use super::{PreparedJob, memory_scope_of, other_parameters, resume};
use crate::error::Error;
use crate::local::run_document::RunDocument;
use crate::local::skill_directory::SkillDirectory;
use crate::local::{DEFAULT_SKILL, owner};
use crate::run::options::RunOptions;
use crate::run::{limits, resources};
use bloomery_crds::limits::EffectiveLimits;
use bloomery_redact::Redactor;
use bloomery_worker::inputs::Inputs;

/// Returns whether an earlier start of a Job of the Skill has stored a Job of this key.
///
/// # Errors
/// If the document of the Job cannot be read, or was changed.
pub(crate) fn is_stored(options: &RunOptions, skill: &str, key: &str) -> Result<bool, Error> {
    owner::check(&options.memory)?;
    Ok(RunDocument::read(&SkillDirectory::new(&options.memory, skill), key)?.is_some())
}

/// Prepares the Job that an earlier start with the key of the options has stored. Returns `None` if there is none. `options.skill` is a name,
/// and not a file. The parameters are checked against the Skill that the Job has, because the one in the memory may have changed since, or
/// may be gone.
///
/// # Errors
/// If the Job has other parameters, or cannot be prepared.
pub(crate) fn stored_job(options: &RunOptions, redactor: Redactor) -> Result<Option<(PreparedJob<'_>, Inputs)>, Error> {
    let skill = options.skill.as_deref().unwrap_or(DEFAULT_SKILL);
    let Some(key) = &options.run_key else { return Ok(None) };
    if !is_stored(options, skill, key)? {
        return Ok(None);
    }
    let (job, inputs) = resume(options, key, redactor)?;
    if has_parameters(&job, &inputs.redactor)? {
        Ok(Some((job, inputs)))
    } else {
        Err(other_parameters(&job.directory, key))
    }
}

/// Returns whether a stored Job has the parameters of its options.
fn has_parameters(PreparedJob { options, document, .. }: &PreparedJob<'_>, redactor: &Redactor) -> Result<bool, Error> {
    let RunDocument { revision, part, .. } = document;
    let limits = EffectiveLimits::resolve(revision.spec.limits(), limits::read(&options.limits)?.as_ref());
    let bound = resources::bind(&revision.spec.resources, &options.resources, options.project_path.as_deref())?;
    // The document has the redacted goal.
    let goal = options.goal.as_deref().map(|goal| redactor.redact_text(goal));
    Ok(goal.as_deref() == Some(part.goal.as_str())
        && bound == part.resources
        && limits == part.limits
        && options.continues.as_ref() == part.continues.as_ref().map(|continued| &continued.name)
        && memory_scope_of(options) == part.memory_scope)
}
