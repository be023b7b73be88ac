//! `bloomery get`: how a Job of the memory stands, or all of them. Nothing is written.

mod kept;
mod page;
mod table;

use crate::args::{GetArgs, ObjectOutput};
use crate::exit::{Exit, Trouble};
use crate::migrate;
use crate::output;
use crate::plain;
use crate::run::document::{self, Document};
use crate::run::ending;
use crate::run::memory::{self, Slag};
use crate::run::standing::{self, Standing};
use bloomery_crds::nearest;
use bloomery_crds::report::Projection;
use bloomery_engine::event::UserQuestion;
use bloomery_redact::Redactor;
use bloomery_worker::inputs::Inputs;
use kept::Kept;
use serde::Serialize;
use std::path::{Path, PathBuf};

/// A Job and how it stands, as its status on a cluster says it.
#[derive(Debug, Serialize)]
struct Seen {
    /// The Job's key.
    job: String,
    /// Its Skill.
    skill: String,
    /// What it is to reach.
    goal: String,
    /// How it stands.
    status: Projection,
    /// What only a person at this machine wants to know.
    #[serde(skip)]
    here: Here,
}

/// What the status of a cluster does not say.
#[derive(Debug)]
struct Here {
    /// The directory of the log.
    log: PathBuf,
    /// How it goes on, where it has not ended.
    on: Option<String>,
    /// What is asked and not yet answered.
    questions: Vec<UserQuestion>,
}

/// A Job as its log tells of it, or its file.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Item {
    /// Its log.
    Seen(Box<Seen>),
    /// Its file.
    Kept(Box<Kept>),
}

impl Item {
    /// Its name on a line.
    fn line(&self) -> String {
        let key = match self {
            Self::Seen(seen) => &seen.job,
            Self::Kept(kept) => &kept.job,
        };
        plain::line(key) + "\n"
    }
}

/// Jobs, as `kubectl get -o json` has objects.
#[derive(Debug, Serialize)]
struct List {
    kind: &'static str,
    items: Vec<Item>,
}

/// Shows a Job, or lists all.
///
/// # Errors
/// If there is no such Job, or its log cannot be read.
pub fn run(args: &GetArgs, memory: &Path) -> Result<Exit, Trouble> {
    let (text, exit) = match &args.key {
        Some(key) => {
            let slag = memory::holder_of_any(memory, args.skill.as_deref(), key)?;
            let item = item(memory, &slag, key)?.ok_or_else(|| document::none(&slag, key))?;
            let text = match args.output {
                Some(ObjectOutput::Name) => item.line(),
                Some(output) => written(&item, output)?,
                None => page::of(&item),
            };
            (text, Exit::Good)
        }
        None => all(args, memory)?,
    };
    output::print(&text).map(|()| exit)
}

/// Every Job of the memory; one that cannot be read is told, and hides no other.
fn all(args: &GetArgs, memory: &Path) -> Result<(String, Exit), Trouble> {
    let (mut jobs, mut exit) = (Vec::new(), Exit::Good);
    for slag in slags(args, memory)? {
        let keys = slag.jobs();
        if !keys.is_empty() && migrate::holds_older_jobs(&slag.dir) {
            let dir = slag.dir.display();
            plain::note(&format!("{dir} is of an older memory: `bloomery migrate` shows where its jobs go"));
        }
        for key in keys {
            let (dir, file) = (slag.log(&key), slag.record(&key));
            match listed(args, memory, &slag, &key) {
                Ok(Some(item)) => jobs.push(item),
                Ok(None) if dir.is_dir() => {
                    plain::note(&format!("{} is passed over: no Job was begun there on this machine", dir.display()));
                }
                Ok(None) => plain::note(&format!("{} is passed over: it is no job", file.display())),
                Err(trouble) => {
                    plain::note(&format!("{}: {}", dir.display(), trouble.message));
                    exit = Exit::Bad;
                }
            }
        }
    }
    let text = match args.output {
        Some(ObjectOutput::Name) => jobs.iter().map(Item::line).collect(),
        Some(output) => written(&List { kind: "List", items: jobs }, output)?,
        None if jobs.is_empty() => {
            let of = args.skill.as_ref().map(|skill| format!(" of the Skill {skill}")).unwrap_or_default();
            plain::note(&format!("there are no Jobs{of} in {}", memory.display()));
            String::new()
        }
        None => table::of(&jobs),
    };
    Ok((text, exit))
}

/// A Job as the list has it. Of one that has ended the record has all that the table shows, and no log is read.
fn listed(args: &GetArgs, memory: &Path, slag: &Slag, key: &str) -> Result<Option<Item>, Trouble> {
    if args.output.is_none()
        && let Ok(Some(kept @ Kept { status: Some(_), .. })) = kept::read(slag, key)
    {
        return Ok(Some(Item::Kept(Box::new(kept))));
    }
    item(memory, slag, key)
}

/// A Job as its log tells of it; without one, as its file does.
fn item(memory: &Path, slag: &Slag, key: &str) -> Result<Option<Item>, Trouble> {
    match Document::read(slag, key)? {
        Some(document) => seen(memory, slag, document).map(|seen| Some(Item::Seen(Box::new(seen)))),
        None => kept::read(slag, key).map(|kept| Some(Item::Kept(Box::new(kept?)))),
    }
}

/// The slags that are looked at: all, or that of a Skill.
fn slags(args: &GetArgs, memory: &Path) -> Result<Vec<Slag>, Trouble> {
    let mut slags = memory::slags(memory)?;
    let Some(skill) = &args.skill else { return Ok(slags) };
    let near = nearest::did_you_mean(skill, slags.iter().map(|slag| slag.name.as_str()));
    slags.retain(|slag| slag.name == *skill);
    if slags.is_empty() {
        return Err(Trouble::usage(format!("the memory {} has no Skill {skill}.{near}", memory.display())));
    }
    Ok(slags)
}

fn seen(memory: &Path, slag: &Slag, Document { revision, part, .. }: Document) -> Result<Seen, Trouble> {
    let (job, goal) = (part.run_key.clone(), part.goal.clone());
    let inputs =
        Inputs::new(revision, part, Redactor::default()).map_err(|error| Trouble::failed(error.to_string()))?;
    let Standing { conversation, projection: status } = standing::of(slag, &inputs)?;
    let on = match (conversation.outcome(), conversation.parked()) {
        (Some(_), _) => None,
        (None, Some(reason)) => Some(ending::parked(reason, memory, slag, &job)),
        (None, None) => Some(format!("It may be running. {}", ending::go_on(memory, slag, &job))),
    };
    let questions = match on {
        Some(_) => conversation.questions().open().iter().map(|open| open.question.clone()).collect(),
        None => Vec::new(),
    };
    let here = Here { log: slag.log(&job), on, questions };
    Ok(Seen { job, skill: slag.name.clone(), goal, status, here })
}

fn written(what: &impl Serialize, form: ObjectOutput) -> Result<String, Trouble> {
    let text = match form {
        // A name is no form of a value; it is printed where the value is known.
        ObjectOutput::Name | ObjectOutput::Json => output::json(what),
        ObjectOutput::Yaml => output::yaml(what),
    };
    text.map_err(Trouble::failed)
}
