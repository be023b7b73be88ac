//! Prepares the Job of a repeated start.

use super::{PreparedJob, memory_scope_of, resume_if};
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
/// If the Job has other parameters, in which case nothing is written; or if it cannot be prepared.
pub(crate) fn stored_job(options: &RunOptions, redactor: Redactor) -> Result<Option<(PreparedJob<'_>, Inputs)>, Error> {
    let skill = options.skill.as_deref().unwrap_or(DEFAULT_SKILL);
    let Some(key) = &options.run_key else { return Ok(None) };
    if !is_stored(options, skill, key)? {
        return Ok(None);
    }
    resume_if(options, key, redactor, |document, redactor| has_parameters(options, document, redactor)).map(Some)
}

/// Returns whether a stored Job has the parameters of the options.
fn has_parameters(options: &RunOptions, document: &RunDocument, redactor: &Redactor) -> Result<bool, Error> {
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
