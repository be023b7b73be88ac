//! `bloomery policy test`: replays calls against the rules of a Skill, and compares the verdicts with the expected ones.

mod evidence;
mod inputs;
mod replay;
mod report;
mod test_file;
mod untested;

use crate::args::{PolicyCommand, PolicyTestArgs};
use crate::error::Error;
use crate::exit::Exit;
use crate::lint::server_tools;
use crate::output;
use crate::text;
use bloomery_embed::run::skill::{self, LoadedSkill};
use bloomery_engine::tool::ListedTool;
use std::path::{Path, PathBuf};
use test_file::TestFile;

/// Runs a command about policies.
///
/// # Errors
/// If the input cannot be used.
pub fn run(command: &PolicyCommand) -> Result<Exit, Error> {
    let PolicyCommand::Test(args) = command;
    test(args)
}

/// Replays all cases of a file.
fn test(args: &PolicyTestArgs) -> Result<Exit, Error> {
    let file = test_file::read(&args.file)?;
    let tools = find_tools(args, &file)?;
    let skill = find_skill(args, &file, tools.as_deref().unwrap_or_default())?;
    let mut rulings = Vec::new();
    for case in &file.cases {
        let of_case = replay::replay(case, &skill, tools.as_deref());
        rulings.extend(of_case.map_err(|why| Error::usage(format!("the case {:?}: {why}", case.name)))?);
    }
    output::print(&report::format(&rulings, args.output)?)?;
    let differing = rulings.iter().filter(|ruling| !ruling.passed).count();
    anstream::eprintln!("{}", report::summary(rulings.len(), file.cases.len(), differing));
    Ok(if differing == 0 { Exit::Success } else { Exit::Error })
}

/// Returns the Skill that the command line names, or else the file. Prints how many findings the lint has about it.
fn find_skill(args: &PolicyTestArgs, file: &TestFile, tools: &[ListedTool]) -> Result<LoadedSkill, Error> {
    let named = match (&args.skill, &file.skill) {
        (None, Some(named)) if skill::is_file(named) => beside(&args.file, named).display().to_string(),
        (Some(named), _) | (None, Some(named)) => named.clone(),
        (None, None) => return Err(Error::usage("which Skill? Name it as `skill` in the file, or with --skill")),
    };
    let skill = skill::find(&args.memory, &named, false, tools)?.loaded;
    if let Some(remark) = skill.remark(tools) {
        text::inform(&remark);
    }
    Ok(skill)
}

/// Returns the tools of the server, if the command line or the file names a list.
fn find_tools(args: &PolicyTestArgs, file: &TestFile) -> Result<Option<Vec<ListedTool>>, Error> {
    let place = match (&args.tools, &file.tools) {
        (None, Some(place)) if !place.contains("://") => beside(&args.file, place).display().to_string(),
        (Some(place), _) | (None, Some(place)) => place.clone(),
        (None, None) => return Ok(None),
    };
    server_tools::read(&place).map(Some)
}

/// Returns a path that a file names, relative to the directory of that file.
fn beside(file: &Path, named: &str) -> PathBuf {
    file.parent().map_or_else(|| PathBuf::from(named), |dir| dir.join(named))
}
