//! How a Job is begun: everything that it needs is found, checked and kept before anything happens.

use super::document::{Asked, Document, NAMESPACE};
use super::memory::{Slag, drawn, holder, own, writer};
use super::model::{self, Models};
use super::server::{self, Server};
use super::skill::{self, Found, Loaded};
use super::{DEFAULT_SKILL, Job, handed, limits, resources, standing, unkept};
use crate::args::RunArgs;
use crate::exit::{Faults, Trouble};
use crate::{migrate, plain};
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::run::{
    BoundResource, ContinuedJob, JobIdentity, JobPart, KeyFile, ModelEndpoint, Revision, VERSION,
};
use bloomery_redact::Redactor;
use bloomery_worker::inputs::Inputs;
use bloomery_worker::record::Record;
use std::io::ErrorKind;
use std::path::Path;

/// The longest goal, in bytes: that of a Job on a cluster.
const MAX_GOAL: usize = 8192;

/// A Job that can be worked on, and what the worker is told of it.
type Begun<'a> = (Job<'a>, Inputs);

/// Begins a Job; one of the same key that was begun before is the same Job only if nothing else was asked of it. All that
/// can be wrong is looked at, and told at once, before anything is made.
pub fn anew(args: &RunArgs, redactor: Redactor) -> Result<Begun<'_>, Trouble> {
    // Nothing of another user's memory is looked at.
    own(&args.memory)?;
    let mut faults = Faults::default();
    let goal = faults.sift(goal(args));
    let limits = faults.sift(limits::read(&args.limits));
    let given = faults.sift(server::named(&args.mcp));
    let found = faults.sift(skill::find(&args.memory, args.skill.as_deref().unwrap_or(DEFAULT_SKILL), args.bootstrap));
    if let Some(Found { slag, .. }) = &found {
        faults.sift(usable(slag, &args.memory));
    }
    let names = found.as_ref().map(|found| found.loaded.spec.model_names());
    let models = faults.sift(model::models(&args.model, names.as_deref(), &env));
    let of_skill = found.as_ref().map(|Found { loaded, .. }| {
        let server = given.and_then(|given| given.map_or_else(|| faults.sift(server::of_skill(loaded)), Some));
        (server, faults.sift(bound(args, loaded)))
    });
    let (Some(goal), Some(lowered), Some(found), Some(models), Some((Some(server), Some(resources)))) =
        (goal, limits, found, models, of_skill)
    else {
        return Err(faults.told());
    };
    if faults.are_there() {
        return Err(faults.told());
    }
    let key = args.run_key.clone().unwrap_or_else(new_key);
    let Found { slag, loaded, .. } = &found;
    let skill_limits = loaded.spec.engine.as_ref().and_then(|engine| engine.limits.as_ref());
    let begun = Document::read(slag, &key)?;
    let asked = Asked {
        job: identity(begun.as_ref(), &key),
        goal,
        limits: EffectiveLimits::resolve(skill_limits, lowered.as_ref()),
        models: models.endpoints.iter().map(without_held).collect(),
        resources,
        continues: continued(slag, args.continues.as_deref())?,
    };
    let (skill, spec) = (loaded.name.clone(), loaded.spec.clone());
    let revision = Revision { version: VERSION, skill, spec, mcp: server.mcp };
    let mut document = Document::new(revision, asked, server.program)?;
    let inputs = inputs(&document, &models, redactor)?;
    // What is kept, and what another run of the same key is held against, is the goal as the log has it.
    document.part.goal = inputs.redactor.owned(document.part.goal);
    same_job(slag, begun.as_ref(), &document)?;
    let writer = writer();
    if !has_ended(slag, &key, &inputs)? {
        slag.open(&writer)?;
        found.settle()?;
        let above = limits::above(lowered.as_ref(), &document.part.limits);
        let idle = resources::idle(&document.revision.spec.resources, &document.part.resources);
        for line in above.into_iter().chain(idle).chain(unkept::told(&document, &models.endpoints)) {
            plain::say(&line);
        }
        if !document.keep(slag, &writer)? {
            // Another process was faster.
            same_job(slag, Document::read(slag, &key)?.as_ref(), &document)?;
        }
    }
    Ok((Job { args, slag: found.slag, document, _models: models, writer }, inputs))
}

/// Sees that a slag is this user's, and a Skill's.
fn usable(slag: &Slag, memory: &Path) -> Result<(), Trouble> {
    slag.own()?;
    if !slag.holds_older_jobs() {
        return Ok(());
    }
    Err(Trouble::usage(format!(
        "{} holds the jobs of an older memory, which nobody could tell from those of a Skill of that name: {}",
        slag.dir.display(),
        migrate::rename(memory, &slag.name)
    )))
}

/// Goes on with a Job as it was begun. The models may be named anew, and so may the MCP server: where they are is no
/// part of what the Job is.
pub fn again<'a>(args: &'a RunArgs, key: &str, redactor: Redactor) -> Result<Begun<'a>, Trouble> {
    if let Some(file) = args.skill.as_deref().filter(|skill| skill::is_file(skill)) {
        return Err(Trouble::usage(format!(
            "--skill {file}: a Job goes on with the Skill that it began with, which is kept beside its log. Leave --skill out; \
             where several Skills have a Job {key}, it takes the name of one"
        )));
    }
    own(&args.memory)?;
    let slag = holder(&args.memory, args.skill.as_deref(), key)?;
    slag.own()?;
    let mut document = Document::required(&slag, key)?;
    let mut faults = Faults::default();
    let given = faults.sift(server::named(&args.mcp));
    let names = document.revision.spec.model_names();
    let models = faults.sift(match (&args.model.model, &args.model.model_url, &args.model.provider) {
        (None, None, None) => model::again(document.part.models.clone(), &args.model, &env),
        _ => model::models(&args.model, Some(&names), &env),
    });
    let (Some(given), Some(models)) = (given, models) else { return Err(faults.told()) };
    if let Some(Server { mcp, program }) = given {
        (document.revision.mcp, document.program) = (mcp, program);
    }
    let inputs = inputs(&document, &models, redactor)?;
    let writer = writer();
    if !has_ended(&slag, key, &inputs)? {
        slag.open(&writer)?;
        for line in unkept::told(&document, &models.endpoints) {
            plain::say(&line);
        }
    }
    Ok((Job { args, slag, document, _models: models, writer }, inputs))
}

/// The Job that is followed up: one of the Skill that has ended.
fn continued(slag: &Slag, key: Option<&str>) -> Result<Option<ContinuedJob>, Trouble> {
    let Some(key) = key else { return Ok(None) };
    match Record::read(&slag.dir, key) {
        Ok(record) if record.outcome.is_some() => {
            Ok(Some(ContinuedJob { name: key.to_owned(), run_key: key.to_owned() }))
        }
        Ok(_) => Err(Trouble::usage(format!("--continues {key}: its record does not say how it ended"))),
        Err(error) if error.kind() == ErrorKind::NotFound => Err(Trouble::usage(format!(
            "--continues {key}: the Skill {} has no Job {key} that has ended; `bloomery get` lists its Jobs",
            slag.name
        ))),
        Err(error) => Err(Trouble::usage(format!("--continues {key}: its record cannot be read: {error}"))),
    }
}

/// What the worker is told.
fn inputs(document: &Document, models: &Models, redactor: Redactor) -> Result<Inputs, Trouble> {
    let part = JobPart { models: models.endpoints.clone(), ..document.part.clone() };
    if let Some(program) = &document.program {
        handed::watch(program, &redactor);
    }
    Inputs::new(document.revision.clone(), part, redactor).map_err(|error| Trouble::usage(error.to_string()))
}

/// What is bound, none of it in the memory.
fn bound(args: &RunArgs, skill: &Loaded) -> Result<Vec<BoundResource>, Trouble> {
    let bound = resources::bound(&skill.spec.resources, &args.resources, args.project_path.as_deref())?;
    resources::apart(&bound, &args.memory).map(|()| bound)
}

fn goal(args: &RunArgs) -> Result<String, Trouble> {
    let goal = args.goal.as_deref().unwrap_or_default();
    if goal.trim().is_empty() {
        return Err(Trouble::usage("--goal must say what is to be reached"));
    }
    if goal.len() > MAX_GOAL {
        return Err(Trouble::usage(format!("--goal has {} bytes, and at most {MAX_GOAL} are taken", goal.len())));
    }
    Ok(goal.to_owned())
}

/// A key that no other Job of this memory has, and that says when it began.
fn new_key() -> String {
    let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    let drawn: String = drawn().chars().take(5).collect();
    format!("{now}-{drawn}")
}

/// A key out of the environment is not kept: the file that it is read from is this process's own.
fn without_held(endpoint: &ModelEndpoint) -> ModelEndpoint {
    let api_key = endpoint.api_key.clone().filter(|KeyFile { path, .. }| !path.starts_with("/proc/self/"));
    ModelEndpoint { api_key, ..endpoint.clone() }
}

/// A Job of this memory, by what servers tell it from others: one that was begun before is the same, and one of the key of
/// a Job that has gone is another.
fn identity(begun: Option<&Document>, key: &str) -> JobIdentity {
    let new =
        || JobIdentity { namespace: NAMESPACE.to_owned(), name: key.to_owned(), uid: format!("{key}-{}", drawn()) };
    begun.map_or_else(new, |begun| begun.part.job.clone())
}

/// Sees that a Job of this key that was begun before, if there is one, is what is asked now. The record of one that has no
/// log, as that of an older memory, must not be replaced.
fn same_job(slag: &Slag, begun: Option<&Document>, asked: &Document) -> Result<(), Trouble> {
    let key = &asked.part.run_key;
    let is_same = match begun {
        Some(begun) => {
            begun.part.goal == asked.part.goal
                && begun.part.resources == asked.part.resources
                && begun.part.revision == asked.part.revision
                && begun.part.continues == asked.part.continues
        }
        None if slag.record(key).exists() => {
            let record = slag.record(key);
            return Err(Trouble::usage(format!(
                "{} is the record of a Job that has no log here: take another --run-key",
                record.display()
            )));
        }
        None => true,
    };
    if is_same {
        return Ok(());
    }
    Err(Trouble::usage(format!(
        "the Skill {} has a Job {key} already, of which something else was asked: take another --run-key, or go on with that \
         one: --resume {key}",
        slag.name
    )))
}

/// Whether a Job has ended. It is only told again, for which its memory need not take a log any more.
fn has_ended(slag: &Slag, key: &str, inputs: &Inputs) -> Result<bool, Trouble> {
    Ok(slag.log(key).is_dir() && standing::of(slag, inputs)?.conversation.outcome().is_some())
}

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
