//! `bloomery get`: how a Job of the memory stands, or all of them. Nothing is written.

mod page;
mod table;

use crate::args::{GetArgs, Output};
use crate::exit::{Exit, Trouble};
use crate::run::document::Document;
use crate::run::memory::{self, Slag};
use crate::run::standing;
use bloomery_crds::report::Projection;
use bloomery_worker::inputs::Inputs;
use bloomery_worker::redact::Redactor;
use serde::Serialize;
use std::io::{self, Write};

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
}

/// Shows a Job, or lists all.
///
/// # Errors
/// If there is no such Job, or its log cannot be read.
pub fn run(args: &GetArgs) -> Result<Exit, Trouble> {
    let (text, exit) = match &args.key {
        Some(key) => {
            let seen = seen(&memory::holder(&args.memory, args.skill.as_deref(), key)?, key)?;
            let text = match args.output {
                Some(output) => written(&seen, output)?,
                None => page::of(&seen),
            };
            (text, Exit::Good)
        }
        None => all(args)?,
    };
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Trouble::failed(error.to_string())),
        _ => Ok(exit),
    }
}

/// Every Job of the memory; one that cannot be read is told, and hides no other.
fn all(args: &GetArgs) -> Result<(String, Exit), Trouble> {
    let (mut jobs, mut exit) = (Vec::new(), Exit::Good);
    let mut slags = memory::slags(&args.memory)?;
    slags.retain(|slag| args.skill.as_ref().is_none_or(|skill| *skill == slag.name));
    for slag in slags {
        for key in slag.jobs() {
            match seen(&slag, &key) {
                Ok(seen) => jobs.push(seen),
                Err(trouble) => {
                    anstream::eprintln!("bloomery: {}: {}", slag.log(&key).display(), trouble.message);
                    exit = Exit::Bad;
                }
            }
        }
    }
    let text = match args.output {
        Some(output) => written(&jobs, output)?,
        None if jobs.is_empty() => {
            anstream::eprintln!("There are no Jobs in {}.", args.memory.display());
            String::new()
        }
        None => table::of(&jobs),
    };
    Ok((text, exit))
}

fn seen(slag: &Slag, key: &str) -> Result<Seen, Trouble> {
    let Some(Document { revision, part, .. }) = Document::read(slag, key)? else {
        let dir = slag.log(key);
        return Err(Trouble::usage(format!("{} is not the log of a Job that ran on this machine", dir.display())));
    };
    let goal = part.goal.clone();
    let inputs =
        Inputs::new(revision, part, Redactor::default()).map_err(|error| Trouble::failed(error.to_string()))?;
    let status = standing::of(slag, &inputs)?.projection;
    Ok(Seen { job: key.to_owned(), skill: slag.name.clone(), goal, status })
}

fn written(what: &impl Serialize, output: Output) -> Result<String, Trouble> {
    let text = match output {
        Output::Json => serde_json::to_string_pretty(what).map(|text| text + "\n").map_err(|error| error.to_string()),
        Output::Yaml => serde_yaml::to_string(what).map_err(|error| error.to_string()),
    };
    text.map_err(Trouble::failed)
}
