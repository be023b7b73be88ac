//! Prepares a Job before its start: finds and checks everything that it needs, and stores its run document.

pub(crate) mod again;
pub mod child;

use super::model::{self, Models};
use super::server::{self, Server};
use super::skill::{self, LoadedSkill, SelectedSkill};
use super::{goal, limits, mcp_environment, resources, scripts, short_secrets};
use crate::error::{Error, ErrorKind, Errors};
use crate::local::job_state::JobState;
use crate::local::run_document::{JobParameters, NAMESPACE, RunDocument};
use crate::local::skill_directory::SkillDirectory;
use crate::local::writer::{random_hex, unique_writer};
use crate::local::{DEFAULT_SKILL, memory, older_jobs, owner};
use crate::run::options::RunOptions;
use bloomery_crds::children::MAX_DEPTH;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::memory_scope;
use bloomery_crds::run::{BoundResource, ContinuedJob, JobIdentity, JobPart, KeyFile, ModelEndpoint, Revision};
use bloomery_crds::v1alpha1::{CoreNote, Limits};
use bloomery_redact::Redactor;
use bloomery_worker::inputs::Inputs;
use bloomery_worker::record::Record;
use std::io;
use std::path::Path;

/// A Job that can be executed.
#[derive(Debug)]
pub struct PreparedJob<'a> {
    /// The options.
    pub options: &'a RunOptions,
    /// The directory of its Skill.
    pub directory: SkillDirectory,
    /// The Skill of a new Job. A resumed Job uses the one in its document.
    pub skill: Option<LoadedSkill>,
    /// The parameters with which the Job was started.
    pub document: RunDocument,
    /// Keeps the keys from the environment readable.
    _models: Models,
    /// The unique name for the files of this process.
    pub writer: String,
    /// The message about a Skill that was created, or that differs from the one in the memory.
    pub skill_note: Option<String>,
    /// Warnings about options that have no effect, or another effect than their user may expect.
    pub warnings: Vec<String>,
}

/// The parts of a new Job that come from the options, the memory and the environment.
struct Parts {
    goal: String,
    /// The limits of the options.
    limits: Option<Limits>,
    skill: SelectedSkill,
    models: Models,
    server: Server,
    resources: Vec<BoundResource>,
}

/// Collects the parts of a new Job. Writes nothing.
///
/// # Errors
/// All errors, at once.
fn collect_parts(options: &RunOptions) -> Result<Parts, Error> {
    // This comes first, because nothing in the memory of another user may be read.
    owner::check(&options.memory)?;
    let mut errors = Errors::default();
    let goal = errors.collect(goal::read(options));
    let limits = errors.collect(limits::read(&options.limits));
    // `None` after an error. `Some(None)` if the options name no server.
    let server_of_options = errors.collect(server::from_options(&options.mcp));
    let name = options.skill.as_deref().unwrap_or(DEFAULT_SKILL);
    let skill = errors.collect(skill::find(&options.memory, name, options.bootstrap, &[]));
    if let Some(SelectedSkill { directory, .. }) = &skill {
        errors.collect(check_usable(directory, &options.memory));
    }
    let model_names = skill.as_ref().map(|skill| skill.loaded.spec.model_names());
    let models = errors.collect(model::find(&options.model, model_names.as_deref(), &env));
    let server_and_resources = skill.as_ref().map(|SelectedSkill { loaded, .. }| {
        let server = server_of_options.and_then(|given| given.or_else(|| errors.collect(server::from_skill(loaded))));
        errors.collect(check_memory_scope(options, loaded));
        (server, errors.collect(bind_resources(options, loaded)))
    });
    match (goal, limits, skill, models, server_and_resources) {
        (Some(goal), Some(limits), Some(skill), Some(models), Some((Some(server), Some(resources))))
            if errors.is_empty() =>
        {
            Ok(Parts { goal, limits, skill, models, server, resources })
        }
        _ => Err(errors.into_error()),
    }
}

/// Prepares a new Job. If a Job already has the key, checks that it has the same parameters, and prepares that Job.
///
/// # Errors
/// All errors of the parameters, at once and before anything is written; or if the Job cannot be stored.
pub fn new_job(options: &RunOptions, redactor: Redactor) -> Result<(PreparedJob<'_>, Inputs), Error> {
    let Parts { goal, limits: limits_of_options, skill, models, server, resources } = collect_parts(options)?;
    let key = options.run_key.clone().unwrap_or_else(new_key);
    let SelectedSkill { directory, loaded, .. } = &skill;
    let existing = RunDocument::read(directory, &key)?;
    let parameters = JobParameters {
        job: identity(existing.as_ref(), &key),
        goal,
        limits: EffectiveLimits::resolve(loaded.spec.limits(), limits_of_options.as_ref()),
        models: models.endpoints.iter().map(without_ram_key).collect(),
        resources,
        continues: continued_job(directory, options.continues.as_deref())?,
        memory_scope: memory_scope_of(options),
    };
    let (name, spec) = (loaded.name.clone(), loaded.spec.clone());
    let revision = Revision::new(name, spec, server.mcp);
    let mut document = RunDocument::new(revision, parameters, server.program)?;
    let inputs = inputs(&document, &models, redactor)?;
    // The document has the redacted goal, like the log.
    document.part.goal = inputs.redactor.redact_owned(document.part.goal);
    check_same_job(directory, existing.as_ref(), &document)?;
    let writer = unique_writer();
    let (mut skill_note, mut warnings) = (None, Vec::new());
    if !has_ended(directory, &key, &inputs)? {
        directory.open(&writer)?;
        skill_note = skill.store()?;
        let ineffective = limits::ineffective_warnings(limits_of_options.as_ref(), &document.part.limits);
        let unused = resources::unused_secret_warnings(&document.revision.spec.resources, &document.part.resources);
        let short = short_secrets::warnings(&document, &models.endpoints);
        let missing = server::missing_note(&document.revision, document.program.as_ref());
        warnings = [ineffective, unused, short].concat();
        warnings.extend(missing.into_iter().chain(scripts::missing_note(&document.revision, options.allow_scripts)));
        if !document.store(directory, &writer)? {
            // Another process has started the Job meanwhile.
            check_same_job(directory, RunDocument::read(directory, &key)?.as_ref(), &document)?;
        }
        // After the document is on disk, this costs little: most file systems write the new directories together with it.
        directory.sync()?;
    }
    let SelectedSkill { directory, loaded, .. } = skill;
    let skill = Some(loaded);
    Ok((PreparedJob { options, directory, skill, document, _models: models, writer, skill_note, warnings }, inputs))
}

/// Checks that a skill directory belongs to this user, and holds no jobs of other Skills from an older memory.
fn check_usable(directory: &SkillDirectory, memory: &Path) -> Result<(), Error> {
    directory.check_owner()?;
    if !directory.holds_older_jobs() {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "{} holds the jobs of an older memory, which must not be mixed with those of a Skill of that name: {}",
        directory.dir.display(),
        older_jobs::rename_hint(memory, &directory.name)
    )))
}

/// Prepares a Job to be resumed. The options may name other models and another MCP server. All other parameters
/// are those of the run document.
///
/// # Errors
/// If there is no such Job, or its parameters cannot be used.
pub fn resume<'a>(options: &'a RunOptions, key: &str, redactor: Redactor) -> Result<(PreparedJob<'a>, Inputs), Error> {
    resume_if(options, key, redactor, |_, _| Ok(true))
}

/// Prepares a Job as [`resume`] does, if the parameters in its run document are those that are expected. The redactor is that of the Job.
/// Otherwise, returns an error and writes nothing.
fn resume_if<'a>(
    options: &'a RunOptions,
    key: &str,
    redactor: Redactor,
    is_expected: impl FnOnce(&RunDocument, &Redactor) -> Result<bool, Error>,
) -> Result<(PreparedJob<'a>, Inputs), Error> {
    if let Some(file) = options.skill.as_deref().filter(|skill| skill::is_file(skill)) {
        return Err(Error::invalid(format!(
            "`options.skill` {file}: a resumed Job uses the Skill with which it was started, which is stored beside its log. Leave \
             `options.skill` out. If several Skills have a Job {key}, give the name of the Skill"
        )));
    }
    owner::check(&options.memory)?;
    let directory = memory::find_log(&options.memory, options.skill.as_deref(), key)?;
    directory.check_owner()?;
    let mut document = RunDocument::read_required(&directory, key)?;
    let mut errors = Errors::default();
    let server_of_options = errors.collect(server::from_options(&options.mcp));
    let names = document.revision.spec.model_names();
    let models = errors.collect(match (&options.model.model, &options.model.model_url, &options.model.provider) {
        (None, None, None) => model::reload(document.part.models.clone(), &options.model, &env),
        _ => model::find(&options.model, Some(&names), &env),
    });
    let (Some(server_of_options), Some(models)) = (server_of_options, models) else { return Err(errors.into_error()) };
    if let Some(Server { mcp, program }) = server_of_options {
        (document.revision.mcp, document.program) = (mcp, program);
    }
    let inputs = inputs(&document, &models, redactor)?;
    if !is_expected(&document, &inputs.redactor)? {
        return Err(other_parameters(&directory, key));
    }
    let (writer, mut warnings) = (unique_writer(), Vec::new());
    if !has_ended(&directory, key, &inputs)? {
        directory.open(&writer)?;
        directory.sync()?;
        warnings = short_secrets::warnings(&document, &models.endpoints);
        warnings.extend(scripts::missing_note(&document.revision, options.allow_scripts));
    }
    let (skill, skill_note) = (None, None);
    Ok((PreparedJob { options, directory, skill, document, _models: models, writer, skill_note, warnings }, inputs))
}

/// Returns the Job that `options.continues` names. It must belong to the same Skill, and must have ended.
fn continued_job(directory: &SkillDirectory, key: Option<&str>) -> Result<Option<ContinuedJob>, Error> {
    let Some(key) = key else { return Ok(None) };
    match Record::read(&directory.dir, key) {
        Ok(record) if record.outcome.is_some() => {
            Ok(Some(ContinuedJob { name: key.to_owned(), run_key: key.to_owned() }))
        }
        Ok(_) => Err(Error::invalid(format!("`options.continues` {key}: its record does not say how it ended"))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(Error::invalid(format!(
            "`options.continues` {key}: the Skill {} has no Job {key} that has ended; `bloomery get` lists its Jobs",
            directory.name
        ))),
        Err(error) => Err(Error::invalid(format!("`options.continues` {key}: its record cannot be read: {error}"))),
    }
}

/// Returns the inputs of the driver. Makes the redactor remove the values of `options.mcp.env`.
fn inputs(document: &RunDocument, models: &Models, redactor: Redactor) -> Result<Inputs, Error> {
    let part = JobPart { models: models.endpoints.clone(), ..document.part.clone() };
    if let Some(program) = &document.program {
        mcp_environment::redact_values(program, &redactor);
    }
    let mut inputs =
        Inputs::new(document.revision.clone(), part, redactor).map_err(|error| Error::invalid(error.to_string()))?;
    // The children of a Job on this machine run in this process.
    inputs.run.can_have_children = inputs.part.depth < MAX_DEPTH;
    Ok(inputs)
}

/// Binds the resources, and checks that their files are in the root, and not in a memory.
fn bind_resources(options: &RunOptions, skill: &LoadedSkill) -> Result<Vec<BoundResource>, Error> {
    let bound = resources::bind(&skill.spec.resources, &options.resources, options.project_path.as_deref())?;
    resources::check_places(&bound, options).map(|()| bound)
}

/// Returns the core notes that `options.memory_scope` names, if it is given.
fn memory_scope_of(options: &RunOptions) -> Option<Vec<CoreNote>> {
    (!options.memory_scope.is_empty()).then(|| options.memory_scope.clone())
}

/// Checks that `options.memory_scope` names only notes in the scope of the Skill.
fn check_memory_scope(options: &RunOptions, skill: &LoadedSkill) -> Result<(), Error> {
    let faults = memory_scope::faults(&skill.spec, memory_scope_of(options).as_deref());
    let reasons: Vec<&str> = faults.iter().filter_map(|fault| Some(fault.split_once(": ")?.1)).collect();
    if reasons.is_empty() {
        Ok(())
    } else {
        Err(Error::invalid(format!("`options.memory_scope`: {}", reasons.join(" "))))
    }
}

/// Returns a unique key that contains the current time.
pub fn new_key() -> String {
    let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    let suffix: String = random_hex().chars().take(5).collect();
    format!("{now}-{suffix}")
}

/// Removes a key that comes from the environment, because its file exists only in this process.
fn without_ram_key(endpoint: &ModelEndpoint) -> ModelEndpoint {
    let api_key = endpoint.api_key.clone().filter(|KeyFile { path, .. }| !path.starts_with("/proc/self/"));
    ModelEndpoint { api_key, ..endpoint.clone() }
}

/// Returns the identity of the Job. A resumed Job keeps its identity. A new Job gets a new uid, even if an earlier Job had the
/// same key.
pub fn identity(existing: Option<&RunDocument>, key: &str) -> JobIdentity {
    let new = || JobIdentity {
        namespace: NAMESPACE.to_owned(),
        name: key.to_owned(),
        uid: format!("{key}-{}", random_hex()),
    };
    existing.map_or_else(new, |existing| existing.part.job.clone())
}

/// Checks that an existing Job of this key has the same parameters as the new one.
///
/// # Errors
/// If its parameters differ, or if the key has a record but no run document, as in an older memory. Such a record must not be
/// replaced.
fn check_same_job(directory: &SkillDirectory, existing: Option<&RunDocument>, new: &RunDocument) -> Result<(), Error> {
    let key = &new.part.run_key;
    let is_same = match existing {
        Some(existing) => {
            existing.part.goal == new.part.goal
                && existing.part.resources == new.part.resources
                && existing.part.revision == new.part.revision
                && existing.part.continues == new.part.continues
                && existing.part.memory_scope == new.part.memory_scope
        }
        None if directory.record(key).exists() => {
            let record = directory.record(key);
            return Err(Error::invalid(format!(
                "{} is the record of a Job without a log: use another `options.run_key`",
                record.display()
            )));
        }
        None => true,
    };
    if is_same { Ok(()) } else { Err(other_parameters(directory, key)) }
}

/// Returns the error for a key whose Job has other parameters.
fn other_parameters(directory: &SkillDirectory, key: &str) -> Error {
    let message = format!(
        "the Skill {} already has a Job {key} with other parameters: use another `options.run_key`",
        directory.name
    );
    Error::new(ErrorKind::Conflict, message)
}

/// Returns whether a Job has ended. The callers write nothing for such a Job, because its memory need not be writable.
fn has_ended(directory: &SkillDirectory, key: &str, inputs: &Inputs) -> Result<bool, Error> {
    Ok(directory.log(key).is_dir() && JobState::read(directory, inputs)?.conversation.outcome().is_some())
}

/// Looks up a variable of the environment that is not empty.
pub fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
