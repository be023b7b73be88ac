//! `bloomery migrate`: moves the files of an older memory to the directories of their Skills. The runtime before Bloomery stored
//! the jobs of all Skills in one directory of its memory.

mod moving;
mod plan;

use crate::args::MigrateArgs;
use crate::error::Error;
use crate::exit::Exit;
use crate::local::SKILL_FILE;
use crate::local::memory;
use crate::local::skill_directory::SkillDirectory;
use crate::{output, text};
use plan::{Move, Plan, Unmoved, plan};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write;
use std::iter;
use std::path::{Component, Path, PathBuf};

/// Shows the files that would be moved. With `--apply`, moves them.
///
/// # Errors
/// If there is no memory, it belongs to another user, or the directory cannot be read.
pub fn run(args: &MigrateArgs) -> Result<Exit, Error> {
    let from = source_dir(&args.memory, &args.from)?;
    if from.join(SKILL_FILE).exists() {
        return Err(Error::usage(format!(
            "{} is the directory of a Skill, and holds the jobs of that Skill: nothing is migrated",
            from.display()
        )));
    }
    // Fails if there is no memory.
    memory::skill_directories(&args.memory)?;
    if !from.try_exists().unwrap_or(true) {
        anstream::eprintln!("there is no {}: nothing to migrate", text::sanitized_line(&from.display().to_string()));
        return Ok(Exit::Success);
    }
    let plan = plan(&args.memory, &from, &args.skill)
        .map_err(|error| Error::failed(format!("{} cannot be read: {error}", from.display())))?;
    check_owner(&args.memory, &args.from, &plan.moves)?;
    let Plan { moves, mut unmoved } = plan;
    let moved = move_files(args, &moves, &mut unmoved)?;
    if args.apply {
        plan::remove_empty(&from);
    }
    let what = if args.apply { "moved" } else { "to move; --apply moves them" };
    anstream::eprintln!("{moved} files {what}; {} stay", unmoved.len());
    Ok(if unmoved.is_empty() { Exit::Success } else { Exit::Error })
}

/// Moves the files, or only checks the moves without `--apply`. Adds the files that cannot be moved to `unmoved`. Prints
/// each move, and each file that stays. Returns the number of moves.
fn move_files(args: &MigrateArgs, planned: &[Move], unmoved: &mut Vec<Unmoved>) -> Result<usize, Error> {
    let mut count = 0;
    let mut out = anstream::stdout().lock();
    for step in planned {
        let result = if args.apply {
            moving::perform(&args.memory, &step.from, &step.to)
        } else {
            moving::check(&args.memory, &step.from, &step.to)
        };
        match result {
            Ok(()) => {
                count += 1;
                print_line(&mut out, &format!("{} -> {}", step.from.display(), step.to.display()))?;
            }
            Err(error) => unmoved.push(Unmoved { file: step.from.clone(), reason: error.into() }),
        }
    }
    for Unmoved { file, reason } in unmoved {
        print_line(&mut out, &format!("{} stays: {reason}", file.display()))?;
    }
    Ok(count)
}

/// Returns the directory whose files are moved. It must be in the memory.
fn source_dir(memory: &Path, name: &str) -> Result<PathBuf, Error> {
    let from = memory.join(name);
    let mut parts = Path::new(name).components();
    let is_below = !name.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)));
    let leads_out = match (memory.canonicalize(), from.canonicalize()) {
        (Ok(memory), Ok(from)) => from == memory || !from.starts_with(&memory),
        // The caller reports a missing or unreadable directory.
        _ => false,
    };
    if is_below && !leads_out {
        return Ok(from);
    }
    Err(Error::usage(format!(
        "--from {}: must be a directory in the memory {}",
        text::sanitized_line(name),
        text::directory(memory)
    )))
}

/// Refuses a memory, source directory or target directory of another user, as `bloomery run` does.
fn check_owner(memory: &Path, from: &str, moves: &[Move]) -> Result<(), Error> {
    // A target path begins with the name of the Skill.
    let skills: BTreeSet<Cow<'_, str>> =
        moves.iter().filter_map(|step| step.to.iter().next()).map(OsStr::to_string_lossy).collect();
    let mut names = iter::once(from).chain(skills.iter().map(AsRef::as_ref));
    names.try_for_each(|name| SkillDirectory::new(memory, name).check_owner())
}

/// Prints a line. A closed pipe does not stop the moves.
fn print_line(out: &mut impl Write, line: &str) -> Result<(), Error> {
    output::write(out, &format!("{}\n", text::sanitized_line(line))).map(drop)
}
