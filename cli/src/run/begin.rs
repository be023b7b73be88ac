//! How a Job is begun: everything that it needs is found, checked and kept before anything happens.

use super::document::{Asked, Document, McpProgram};
use super::memory::{Slag, holder, writer};
use super::model;
use super::skill::{self, Loaded};
use super::{DEFAULT_SKILL, Job, resources};
use crate::args::{McpArgs, RunArgs};
use crate::exit::Trouble;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::run::{KeyFile, McpEndpoint, ModelEndpoint, Revision, VERSION};
use bloomery_crds::v1alpha1::Limits;
use bloomery_worker::http;
use serde_json::{Map, Value};
use std::path::Path;
use std::time::Duration;

/// The longest goal, in bytes: that of a Job on a cluster.
const MAX_GOAL: usize = 8192;

/// Begins a Job; one of the same key that was begun before is the same Job only if nothing else was asked of it.
pub fn anew(args: &RunArgs) -> Result<Job<'_>, Trouble> {
    let goal = goal(args)?;
    let limits = limits(&args.limits)?;
    model::check(&args.model, &env)?;
    let writer = writer();
    let (slag, loaded) = load(args, &writer)?;
    let declared = &loaded.spec.resources;
    let bound = resources::bound(declared, &args.resources, args.project_path.as_deref())?;
    resources::apart(&bound, &args.memory)?;
    let Server { mcp, program } = server(&args.mcp, &loaded)?;
    let models = model::models(&args.model, &loaded.spec.model_names(), &env)?;
    let key = args.run_key.clone().unwrap_or_else(new_key);
    let skill_limits = loaded.spec.engine.as_ref().and_then(|engine| engine.limits.as_ref());
    let asked = Asked {
        key: key.clone(),
        goal,
        limits: EffectiveLimits::resolve(skill_limits, limits.as_ref()),
        models: models.endpoints.iter().map(without_held).collect(),
        resources: bound,
    };
    let revision = Revision { version: VERSION, skill: loaded.name, spec: loaded.spec, mcp };
    let document = Document::new(revision, asked, program)?;
    if !document.keep(&slag, &writer)? {
        same_job(&slag, &key, &document)?;
    }
    Ok(Job { args, slag, document, models, writer })
}

/// Goes on with a Job as it was begun. The models may be named anew, and so may the MCP server: where they are is no
/// part of what the Job is.
pub fn again<'a>(args: &'a RunArgs, key: &str) -> Result<Job<'a>, Trouble> {
    let slag = holder(&args.memory, args.skill.as_deref(), key)?;
    let writer = writer();
    slag.open(&writer)?;
    let mut document = Document::required(&slag, key)?;
    if let Some(Server { mcp, program }) = named(&args.mcp)? {
        (document.revision.mcp, document.program) = (mcp, program);
    }
    let names = document.revision.spec.model_names();
    let models = match (&args.model.model, &args.model.model_url, &args.model.provider) {
        (None, None, None) => model::again(document.part.models.clone(), &args.model, &env)?,
        _ => model::models(&args.model, &names, &env)?,
    };
    Ok(Job { args, slag, document, models, writer })
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

/// The Skill and its slag, which is made where it is missing. One out of a file becomes the operational Skill of a slag
/// that has none; where there is another, it stays.
fn load(args: &RunArgs, writer: &str) -> Result<(Slag, Loaded), Trouble> {
    let named = args.skill.as_deref().unwrap_or(DEFAULT_SKILL);
    if !skill::is_file(named) {
        let slag = Slag::of(&args.memory, named);
        // A name that is mistyped leaves nothing behind.
        if !slag.dir.join(skill::FILE).exists() && !skill::is_template(named) && !args.bootstrap {
            return Err(Trouble::usage(skill::unknown(&slag)));
        }
        slag.open(writer)?;
        let loaded = skill::of_slag(&slag, args.bootstrap)?;
        return Ok((slag, loaded));
    }
    let loaded = skill::read(Path::new(named), None)?;
    let slag = Slag::of(&args.memory, &loaded.name);
    slag.open(writer)?;
    skill::adopt(&slag, &loaded, named)?;
    Ok((slag, loaded))
}

/// Where an MCP server is, if there is one: at an address, or in a program.
struct Server {
    mcp: Option<McpEndpoint>,
    program: Option<McpProgram>,
}

/// Where the MCP server is: what the command line names, else what the Skill does.
fn server(args: &McpArgs, skill: &Loaded) -> Result<Server, Trouble> {
    if let Some(named) = named(args)? {
        return Ok(named);
    }
    if skill.server_of_a_cluster().is_some() {
        return Err(Trouble::usage(format!(
            "the MCP server of the Skill {} is one that only a cluster has: name it with --mcp URL or --mcp-command PROGRAM",
            skill.name
        )));
    }
    Ok(Server { mcp: skill.mcp.as_deref().map(endpoint).transpose()?, program: None })
}

/// The MCP server that the command line names.
fn named(args: &McpArgs) -> Result<Option<Server>, Trouble> {
    let McpArgs { url, command, env } = args;
    Ok(match url {
        Some(url) => Some(Server { mcp: Some(endpoint(url)?), program: None }),
        None if command.is_empty() => None,
        None => Some(Server { mcp: None, program: Some(McpProgram { argv: command.clone(), env: env.clone() }) }),
    })
}

fn endpoint(url: &str) -> Result<McpEndpoint, Trouble> {
    http::client(url, Duration::ZERO).map_err(|error| Trouble::usage(format!("the MCP server: {error}")))?;
    Ok(McpEndpoint { url: url.to_owned() })
}

/// Limits as the command line has them, read as those of a Job's manifest are.
fn limits(given: &[(String, String)]) -> Result<Option<Limits>, Trouble> {
    const KNOWN: [&str; 4] = ["steps", "toolCalls", "tokens", "duration"];
    let mut limits = Map::new();
    for (name, value) in given {
        if !KNOWN.contains(&name.as_str()) {
            let near = bloomery_crds::nearest::did_you_mean(name, KNOWN);
            return Err(Trouble::usage(format!(
                "--limit {name}: there is no such limit, but {}.{near}",
                KNOWN.join(", ")
            )));
        }
        let value = value.parse::<u64>().map_or_else(|_| Value::from(value.as_str()), Value::from);
        if value == 0 {
            return Err(Trouble::usage(format!("--limit {name}: nothing could be done")));
        }
        limits.insert(name.clone(), value);
    }
    if limits.is_empty() {
        return Ok(None);
    }
    serde_json::from_value(Value::Object(limits)).map(Some).map_err(|error| Trouble::usage(format!("--limit: {error}")))
}

/// A key that no other Job of this memory has, and that says when it began.
fn new_key() -> String {
    let now = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    let drawn: String = writer().chars().rev().take(5).collect();
    format!("{now}-{drawn}")
}

/// A key out of the environment is not kept: the file that it is read from is this process's own.
fn without_held(endpoint: &ModelEndpoint) -> ModelEndpoint {
    let api_key = endpoint.api_key.clone().filter(|KeyFile { path, .. }| !path.starts_with("/proc/self/"));
    ModelEndpoint { api_key, ..endpoint.clone() }
}

/// A Job of this key was begun before. What was asked of it must be what is asked now.
fn same_job(slag: &Slag, key: &str, asked: &Document) -> Result<(), Trouble> {
    let begun = Document::read(slag, key)?;
    let same = begun.is_some_and(|begun| {
        begun.part.goal == asked.part.goal
            && begun.part.resources == asked.part.resources
            && begun.part.revision == asked.part.revision
    });
    if same {
        return Ok(());
    }
    Err(Trouble::usage(format!(
        "the Skill {} has a Job {key} already, of which something else was asked: take another --run-key, or go on with that \
         one: --resume {key}",
        slag.name
    )))
}

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
