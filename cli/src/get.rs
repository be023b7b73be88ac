//! `bloomery get`: shows the Jobs of a memory. It only reads.

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
use item::{Item, LocalDetails, LoggedJob};
use record::RecordedJob;
use serde::Serialize;
use std::path::Path;

/// A list of Jobs, in the form of `kubectl get -o json`.
#[derive(Debug, Serialize)]
struct List {
    kind: &'static str,
    items: Vec<Item>,
}

/// Shows the Job with the given key, or lists all Jobs.
///
/// # Errors
/// If there is no such Job, or its log cannot be read.
pub fn run(args: &GetArgs, memory: &Path) -> Result<Exit, Error> {
    let (text, exit) = match &args.key {
        Some(key) => {
            let directory = memory::find_log_or_record(memory, args.skill.as_deref(), key)?;
            let item = read_item(memory, &directory, key)?.ok_or_else(|| run_document::not_found(&directory, key))?;
            let text = match args.output {
                Some(ObjectOutput::Name) => item.name_line(),
                Some(output) => serialize(&item, output)?,
                None => page::render(&item),
            };
            (text, Exit::Success)
        }
        None => list_jobs(args, memory)?,
    };
    output::print(&text).map(|()| exit)
}

/// Lists all Jobs of the memory. Returns the list and the exit code. A Job that cannot be read is reported on stderr and left out.
fn list_jobs(args: &GetArgs, memory: &Path) -> Result<(String, Exit), Error> {
    let (mut jobs, mut exit) = (Vec::new(), Exit::Success);
    for directory in selected_directories(args, memory)? {
        let keys = directory.job_keys();
        if !keys.is_empty() && older_jobs::is_older_jobs_dir(&directory.dir) {
            let dir = directory.dir.display();
            text::report(&format!("{dir} is from an older memory: `bloomery migrate` shows where its jobs go"));
        }
        for key in keys {
            let (log, record) = (directory.log(&key), directory.record(&key));
            match read_list_item(args, memory, &directory, &key) {
                Ok(Some(item)) => jobs.push(item),
                Ok(None) if log.is_dir() => {
                    text::report(&format!("{} is skipped: no Job was started there on this machine", log.display()));
                }
                Ok(None) => text::report(&format!("{} is skipped: it is not the record of a Job", record.display())),
                Err(error) => {
                    text::report(&format!("{}: {}", log.display(), error.message));
                    exit = Exit::Error;
                }
            }
        }
    }
    let text = match args.output {
        Some(ObjectOutput::Name) => jobs.iter().map(Item::name_line).collect(),
        Some(output) => serialize(&List { kind: "List", items: jobs }, output)?,
        None if jobs.is_empty() => {
            let of_skill = args.skill.as_ref().map(|skill| format!(" of the Skill {skill}")).unwrap_or_default();
            text::report(&format!("there are no Jobs{of_skill} in {}", memory.display()));
            String::new()
        }
        None => table::render(&jobs),
    };
    Ok((text, exit))
}

/// Reads a Job for the list. For the table, the record of a Job that has ended is enough.
fn read_list_item(args: &GetArgs, memory: &Path, directory: &SkillDirectory, key: &str) -> Result<Option<Item>, Error> {
    if args.output.is_none()
        && let Ok(Some(recorded @ RecordedJob { status: Some(_), .. })) = record::read(directory, key)
    {
        return Ok(Some(Item::Recorded(Box::new(recorded))));
    }
    read_item(memory, directory, key)
}

/// Reads a Job from its log, or from its record if it has no log.
fn read_item(memory: &Path, directory: &SkillDirectory, key: &str) -> Result<Option<Item>, Error> {
    match RunDocument::read(directory, key)? {
        Some(document) => read_logged(memory, directory, document).map(|job| Some(Item::Logged(Box::new(job)))),
        None => record::read(directory, key).map(|recorded| Some(Item::Recorded(Box::new(recorded?)))),
    }
}

/// Returns the directory of the selected Skill, or the directories of all Skills.
fn selected_directories(args: &GetArgs, memory: &Path) -> Result<Vec<SkillDirectory>, Error> {
    let mut directories = memory::skill_directories(memory)?;
    let Some(skill) = &args.skill else { return Ok(directories) };
    let near = nearest::did_you_mean(skill, directories.iter().map(|directory| directory.name.as_str()));
    directories.retain(|directory| directory.name == *skill);
    if directories.is_empty() {
        return Err(Error::usage(format!("the memory {} has no Skill {skill}.{near}", text::directory(memory))));
    }
    Ok(directories)
}

/// Reads a Job from its log.
fn read_logged(
    memory: &Path,
    directory: &SkillDirectory,
    RunDocument { revision, part, .. }: RunDocument,
) -> Result<LoggedJob, Error> {
    let (job, goal) = (part.run_key.clone(), part.goal.clone());
    let inputs = Inputs::new(revision, part, Redactor::default()).map_err(|error| Error::failed(error.to_string()))?;
    let JobState { conversation, projection: status } = JobState::read(directory, &inputs)?;
    let unfinished = match (conversation.outcome(), conversation.parked()) {
        (Some(_), _) => None,
        (None, Some(reason)) => Some(summary::parked(reason, memory, directory, &job)),
        (None, None) => Some(format!("It may be running. {}", summary::resume_command(memory, directory, &job))),
    };
    let mut questions = Vec::new();
    if unfinished.is_some() {
        questions.extend(conversation.questions().open().iter().map(|open| open.question.clone()));
    }
    let local = LocalDetails { log: directory.log(&job), unfinished, questions };
    Ok(LoggedJob { job, skill: directory.name.clone(), goal, status, local })
}

/// Serializes a value as JSON or YAML.
fn serialize(value: &impl Serialize, format: ObjectOutput) -> Result<String, Error> {
    match format {
        // The callers print names themselves.
        ObjectOutput::Name | ObjectOutput::Json => output::json(value),
        ObjectOutput::Yaml => output::yaml(value),
    }
}
