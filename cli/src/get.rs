//! `bloomery get`: shows Jobs of the memory. Nothing is written.

mod item;
mod page;
mod record;
mod table;

use crate::args::{GetArgs, ObjectOutput};
use crate::error::Error;
use crate::exit::Exit;
use crate::local::job_state::JobState;
use crate::local::run_document::{self, RunDocument};
use crate::local::skill_directory::SkillDirectory;
use crate::local::{memory, older_jobs};
use crate::{output, summary, text};
use bloomery_crds::nearest;
use bloomery_redact::Redactor;
use bloomery_worker::inputs::Inputs;
use item::{Item, LoggedJob, OnThisMachine};
use record::RecordedJob;
use serde::Serialize;
use std::path::Path;

/// A list of Jobs, in the form of `kubectl get -o json`.
#[derive(Debug, Serialize)]
struct List {
    kind: &'static str,
    items: Vec<Item>,
}

/// Shows a Job, or lists all.
///
/// # Errors
/// If there is no such Job, or its log cannot be read.
pub fn run(args: &GetArgs, memory: &Path) -> Result<Exit, Error> {
    let (text, exit) = match &args.key {
        Some(key) => {
            let directory = memory::find_log_or_record(memory, args.skill.as_deref(), key)?;
            let item = item(memory, &directory, key)?.ok_or_else(|| run_document::not_found(&directory, key))?;
            let text = match args.output {
                Some(ObjectOutput::Name) => item.line(),
                Some(output) => written(&item, output)?,
                None => page::render(&item),
            };
            (text, Exit::Success)
        }
        None => all(args, memory)?,
    };
    output::print(&text).map(|()| exit)
}

/// Lists all Jobs of the memory. One that cannot be read is reported, and does not hide the others.
fn all(args: &GetArgs, memory: &Path) -> Result<(String, Exit), Error> {
    let (mut jobs, mut exit) = (Vec::new(), Exit::Success);
    for directory in directories(args, memory)? {
        let keys = directory.jobs();
        if !keys.is_empty() && older_jobs::is_older_jobs_dir(&directory.dir) {
            let dir = directory.dir.display();
            text::report(&format!("{dir} is from an older memory: `bloomery migrate` shows where its jobs go"));
        }
        for key in keys {
            let (dir, file) = (directory.log(&key), directory.record(&key));
            match listed(args, memory, &directory, &key) {
                Ok(Some(item)) => jobs.push(item),
                Ok(None) if dir.is_dir() => {
                    text::report(&format!("{} is skipped: no Job was started there on this machine", dir.display()));
                }
                Ok(None) => text::report(&format!("{} is skipped: it is not a job", file.display())),
                Err(error) => {
                    text::report(&format!("{}: {}", dir.display(), error.message));
                    exit = Exit::Error;
                }
            }
        }
    }
    let text = match args.output {
        Some(ObjectOutput::Name) => jobs.iter().map(Item::line).collect(),
        Some(output) => written(&List { kind: "List", items: jobs }, output)?,
        None if jobs.is_empty() => {
            let of = args.skill.as_ref().map(|skill| format!(" of the Skill {skill}")).unwrap_or_default();
            text::report(&format!("there are no Jobs{of} in {}", memory.display()));
            String::new()
        }
        None => table::render(&jobs),
    };
    Ok((text, exit))
}

/// Reads a Job for the list. The record of a Job that has ended is enough for the table.
fn listed(args: &GetArgs, memory: &Path, directory: &SkillDirectory, key: &str) -> Result<Option<Item>, Error> {
    if args.output.is_none()
        && let Ok(Some(kept @ RecordedJob { status: Some(_), .. })) = record::read(directory, key)
    {
        return Ok(Some(Item::Recorded(Box::new(kept))));
    }
    item(memory, directory, key)
}

/// Reads a Job from its log, or from its record if it has no log.
fn item(memory: &Path, directory: &SkillDirectory, key: &str) -> Result<Option<Item>, Error> {
    match RunDocument::read(directory, key)? {
        Some(document) => seen(memory, directory, document).map(|seen| Some(Item::Logged(Box::new(seen)))),
        None => record::read(directory, key).map(|kept| Some(Item::Recorded(Box::new(kept?)))),
    }
}

/// Returns the directories of all Skills, or that of the selected Skill.
fn directories(args: &GetArgs, memory: &Path) -> Result<Vec<SkillDirectory>, Error> {
    let mut directories = memory::skill_directories(memory)?;
    let Some(skill) = &args.skill else { return Ok(directories) };
    let near = nearest::did_you_mean(skill, directories.iter().map(|directory| directory.name.as_str()));
    directories.retain(|directory| directory.name == *skill);
    if directories.is_empty() {
        return Err(Error::usage(format!("the memory {} has no Skill {skill}.{near}", memory.display())));
    }
    Ok(directories)
}

fn seen(
    memory: &Path,
    directory: &SkillDirectory,
    RunDocument { revision, part, .. }: RunDocument,
) -> Result<LoggedJob, Error> {
    let (job, goal) = (part.run_key.clone(), part.goal.clone());
    let inputs = Inputs::new(revision, part, Redactor::default()).map_err(|error| Error::failed(error.to_string()))?;
    let JobState { conversation, projection: status } = JobState::read(directory, &inputs)?;
    let on = match (conversation.outcome(), conversation.parked()) {
        (Some(_), _) => None,
        (None, Some(reason)) => Some(summary::parked(reason, memory, directory, &job)),
        (None, None) => Some(format!("It may be running. {}", summary::resume_command(memory, directory, &job))),
    };
    let questions = match on {
        Some(_) => conversation.questions().open().iter().map(|open| open.question.clone()).collect(),
        None => Vec::new(),
    };
    let here = OnThisMachine { log: directory.log(&job), on, questions };
    Ok(LoggedJob { job, skill: directory.name.clone(), goal, status, here })
}

fn written(what: &impl Serialize, form: ObjectOutput) -> Result<String, Error> {
    match form {
        // The caller handles names.
        ObjectOutput::Name | ObjectOutput::Json => output::json(what),
        ObjectOutput::Yaml => output::yaml(what),
    }
}
