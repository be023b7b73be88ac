//! Prepares a Job: finds, checks and stores everything that it needs, before it starts.

use super::model::{self, Models};
use super::server::{self, Server};
use super::skill::{self, Found, Loaded};
use super::{limits, mcp_environment, resources, short_secrets};
use crate::args::RunArgs;
use crate::error::{Error, Errors};
use crate::local::job_state::JobState;
use crate::local::run_document::{Asked, NAMESPACE, RunDocument};
use crate::local::skill_directory::SkillDirectory;
use crate::local::writer::{random_hex, unique_writer};
use crate::local::{DEFAULT_SKILL, memory, older_jobs, owner};
use crate::text;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::run::{
    BoundResource, ContinuedJob, JobIdentity, JobPart, KeyFile, ModelEndpoint, Revision, VERSION,
};
use bloomery_redact::Redactor;
use bloomery_worker::inputs::Inputs;
use bloomery_worker::record::Record;
use std::io::ErrorKind;
use std::path::Path;

/// The longest goal, in bytes, as on a cluster.
const MAX_GOAL: usize = 8192;

/// A Job that can be executed.
#[derive(Debug)]
pub struct PreparedJob<'a> {
    /// The command line.
    pub args: &'a RunArgs,
    /// The directory of its Skill.
    pub directory: SkillDirectory,
    /// The parameters that the Job was started with.
    pub document: RunDocument,
    /// Keeps the keys from the environment readable.
    _models: Models,
    /// The unique name for the files of this process.
    pub writer: String,
}

/// Prepares a new Job. A Job of the same key is resumed only if it was started with the same parameters. All errors are
/// reported at once, before anything is written.
pub fn new_job(args: &RunArgs, redactor: Redactor) -> Result<(PreparedJob<'_>, Inputs), Error> {
    // Nothing in another user's memory is read.
    owner::check(&args.memory)?;
    let mut errors = Errors::default();
    let goal = errors.keep(goal(args));
    let limits = errors.keep(limits::read(&args.limits));
    let given = errors.keep(server::from_args(&args.mcp));
    let found = errors.keep(skill::find(&args.memory, args.skill.as_deref().unwrap_or(DEFAULT_SKILL), args.bootstrap));
    if let Some(Found { directory, .. }) = &found {
        errors.keep(usable(directory, &args.memory));
    }
    let names = found.as_ref().map(|found| found.loaded.spec.model_names());
    let models = errors.keep(model::find(&args.model, names.as_deref(), &env));
    let of_skill = found.as_ref().map(|Found { loaded, .. }| {
        let server = given.and_then(|given| given.map_or_else(|| errors.keep(server::from_skill(loaded)), Some));
        (server, errors.keep(bound(args, loaded)))
    });
    let (Some(goal), Some(lowered), Some(found), Some(models), Some((Some(server), Some(resources)))) =
        (goal, limits, found, models, of_skill)
    else {
        return Err(errors.into_error());
    };
    if !errors.is_empty() {
        return Err(errors.into_error());
    }
    let key = args.run_key.clone().unwrap_or_else(new_key);
    let Found { directory, loaded, .. } = &found;
    let skill_limits = loaded.spec.engine.as_ref().and_then(|engine| engine.limits.as_ref());
    let begun = RunDocument::read(directory, &key)?;
    let asked = Asked {
        job: identity(begun.as_ref(), &key),
        goal,
        limits: EffectiveLimits::resolve(skill_limits, lowered.as_ref()),
        models: models.endpoints.iter().map(without_held).collect(),
        resources,
        continues: continued(directory, args.continues.as_deref())?,
    };
    let (skill, spec) = (loaded.name.clone(), loaded.spec.clone());
    let revision = Revision { version: VERSION, skill, spec, mcp: server.mcp };
    let mut document = RunDocument::new(revision, asked, server.program)?;
    let inputs = inputs(&document, &models, redactor)?;
    // The goal is stored and compared as it is in the log.
    document.part.goal = inputs.redactor.owned(document.part.goal);
    same_job(directory, begun.as_ref(), &document)?;
    let writer = unique_writer();
    if !has_ended(directory, &key, &inputs)? {
        directory.open(&writer)?;
        found.store()?;
        let above = limits::ineffective_warnings(lowered.as_ref(), &document.part.limits);
        let idle = resources::unused_secret_warnings(&document.revision.spec.resources, &document.part.resources);
        for line in above.into_iter().chain(idle).chain(short_secrets::warnings(&document, &models.endpoints)) {
            text::inform(&line);
        }
        if !document.keep(directory, &writer)? {
            // Another process has started the Job meanwhile.
            same_job(directory, RunDocument::read(directory, &key)?.as_ref(), &document)?;
        }
    }
    Ok((PreparedJob { args, directory: found.directory, document, _models: models, writer }, inputs))
}

/// Checks that a skill directory belongs to this user, and to a Skill.
fn usable(directory: &SkillDirectory, memory: &Path) -> Result<(), Error> {
    directory.check_owner()?;
    if !directory.holds_older_jobs() {
        return Ok(());
    }
    Err(Error::usage(format!(
        "{} holds the jobs of an older memory, and a Skill of that name would mix them with its own: {}",
        directory.dir.display(),
        older_jobs::rename_hint(memory, &directory.name)
    )))
}

/// Prepares the resumption of a Job. The models and the MCP server may have new addresses, because these are no part of the
/// Job.
pub fn resume<'a>(args: &'a RunArgs, key: &str, redactor: Redactor) -> Result<(PreparedJob<'a>, Inputs), Error> {
    if let Some(file) = args.skill.as_deref().filter(|skill| skill::is_file(skill)) {
        return Err(Error::usage(format!(
            "--skill {file}: a Job is resumed with the Skill that it was started with, which is stored beside its log. Leave \
             --skill out, or give the name of a Skill if several have a Job {key}"
        )));
    }
    owner::check(&args.memory)?;
    let directory = memory::find_log(&args.memory, args.skill.as_deref(), key)?;
    directory.check_owner()?;
    let mut document = RunDocument::required(&directory, key)?;
    let mut errors = Errors::default();
    let given = errors.keep(server::from_args(&args.mcp));
    let names = document.revision.spec.model_names();
    let models = errors.keep(match (&args.model.model, &args.model.model_url, &args.model.provider) {
        (None, None, None) => model::reload(document.part.models.clone(), &args.model, &env),
        _ => model::find(&args.model, Some(&names), &env),
    });
    let (Some(given), Some(models)) = (given, models) else { return Err(errors.into_error()) };
    if let Some(Server { mcp, program }) = given {
        (document.revision.mcp, document.program) = (mcp, program);
    }
    let inputs = inputs(&document, &models, redactor)?;
    let writer = unique_writer();
    if !has_ended(&directory, key, &inputs)? {
        directory.open(&writer)?;
        for line in short_secrets::warnings(&document, &models.endpoints) {
            text::inform(&line);
        }
    }
    Ok((PreparedJob { args, directory, document, _models: models, writer }, inputs))
}

/// Returns the Job that is continued: one of the Skill that has ended.
fn continued(directory: &SkillDirectory, key: Option<&str>) -> Result<Option<ContinuedJob>, Error> {
    let Some(key) = key else { return Ok(None) };
    match Record::read(&directory.dir, key) {
        Ok(record) if record.outcome.is_some() => {
            Ok(Some(ContinuedJob { name: key.to_owned(), run_key: key.to_owned() }))
        }
        Ok(_) => Err(Error::usage(format!("--continues {key}: its record does not say how it ended"))),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Error::usage(format!(
            "--continues {key}: the Skill {} has no Job {key} that has ended; `bloomery get` lists its Jobs",
            directory.name
        ))),
        Err(error) => Err(Error::usage(format!("--continues {key}: its record cannot be read: {error}"))),
    }
}

/// Returns the inputs of the worker.
fn inputs(document: &RunDocument, models: &Models, redactor: Redactor) -> Result<Inputs, Error> {
    let part = JobPart { models: models.endpoints.clone(), ..document.part.clone() };
    if let Some(program) = &document.program {
        mcp_environment::redact_values(program, &redactor);
    }
    Inputs::new(document.revision.clone(), part, redactor).map_err(|error| Error::usage(error.to_string()))
}

/// Binds the resources, none of which may be in the memory.
fn bound(args: &RunArgs, skill: &Loaded) -> Result<Vec<BoundResource>, Error> {
    let bound = resources::bind(&skill.spec.resources, &args.resources, args.project_path.as_deref())?;
    resources::check_outside_memory(&bound, &args.memory).map(|()| bound)
}

fn goal(args: &RunArgs) -> Result<String, Error> {
    let goal = args.goal.as_deref().unwrap_or_default();
    if goal.trim().is_empty() {
        return Err(Error::usage("--goal must not be empty"));
    }
    if goal.len() > MAX_GOAL {
        return Err(Error::usage(format!("--goal has {} bytes; the limit is {MAX_GOAL}", goal.len())));
    }
    Ok(goal.to_owned())
}

/// Returns a unique key with the time of the start.
fn new_key() -> String {
    let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    let suffix: String = random_hex().chars().take(5).collect();
    format!("{now}-{suffix}")
}

/// Removes a key from the environment, because its file belongs to this process.
fn without_held(endpoint: &ModelEndpoint) -> ModelEndpoint {
    let api_key = endpoint.api_key.clone().filter(|KeyFile { path, .. }| !path.starts_with("/proc/self/"));
    ModelEndpoint { api_key, ..endpoint.clone() }
}

/// Returns the identity of the Job for servers. A Job that is resumed keeps its identity; a new Job of the same key gets
/// another one.
fn identity(begun: Option<&RunDocument>, key: &str) -> JobIdentity {
    let new = || JobIdentity {
        namespace: NAMESPACE.to_owned(),
        name: key.to_owned(),
        uid: format!("{key}-{}", random_hex()),
    };
    begun.map_or_else(new, |begun| begun.part.job.clone())
}

/// Checks that an existing Job of this key has the same parameters. The record of a Job without a log, as in an older memory,
/// must not be replaced.
fn same_job(directory: &SkillDirectory, begun: Option<&RunDocument>, asked: &RunDocument) -> Result<(), Error> {
    let key = &asked.part.run_key;
    let is_same = match begun {
        Some(begun) => {
            begun.part.goal == asked.part.goal
                && begun.part.resources == asked.part.resources
                && begun.part.revision == asked.part.revision
                && begun.part.continues == asked.part.continues
        }
        None if directory.record(key).exists() => {
            let record = directory.record(key);
            return Err(Error::usage(format!(
                "{} is the record of a Job without a log: use another --run-key",
                record.display()
            )));
        }
        None => true,
    };
    if is_same {
        return Ok(());
    }
    Err(Error::usage(format!(
        "the Skill {} already has a Job {key} with other parameters: use another --run-key, or resume that Job with \
         --resume {key}",
        directory.name
    )))
}

/// Returns whether a Job has ended. Showing it again requires no writable memory.
fn has_ended(directory: &SkillDirectory, key: &str, inputs: &Inputs) -> Result<bool, Error> {
    Ok(directory.log(key).is_dir() && JobState::read(directory, inputs)?.conversation.outcome().is_some())
}

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
