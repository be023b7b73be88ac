//! `bloomery migrate`: moves the files of an older memory to the directories of their Skills. The runtime before Bloomery stored
//! the jobs of all Skills in one directory of its memory.

use crate::args::MigrateArgs;
use crate::error::Error;
use crate::exit::Exit;
use crate::local::skill_directory::SkillDirectory;
use crate::local::{SKILL_FILE, memory, older_jobs};
use crate::{output, text};
use bloomery_worker::migration::{
    Counts, Move, MoveError, Reason, Step, Unmoved, move_files, plan, remove_empty, source_dir,
};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::Write;
use std::iter;
use std::path::Path;

/// Shows the files that would be moved. With `--apply`, moves them.
///
/// # Errors
/// If there is no memory, it belongs to another user, or the directory cannot be read.
pub fn run(args: &MigrateArgs) -> Result<Exit, Error> {
    let from = source_dir(&args.memory, &args.from).ok_or_else(|| outside(args))?;
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
    let mut out = anstream::stdout().lock();
    let Counts { moved, stay } = move_files(&args.memory, plan, args.apply, |step| match step {
        Step::Moves(step) => print_line(&mut out, &format!("{} -> {}", step.from.display(), step.to.display())),
        Step::Stays(Unmoved { file, reason }) => {
            print_line(&mut out, &format!("{} stays: {}", file.display(), reason_text(&args.memory, reason)))
        }
    })?;
    if args.apply {
        remove_empty(&from);
    }
    let what = if args.apply { "moved" } else { "to move; --apply moves them" };
    anstream::eprintln!("{moved} files {what}; {stay} stay");
    Ok(if stay == 0 { Exit::Success } else { Exit::Error })
}

fn outside(args: &MigrateArgs) -> Error {
    let (from, memory) = (text::sanitized_line(&args.from), text::directory(&args.memory));
    Error::usage(format!("--from {from}: must be a directory in the memory {memory}"))
}

/// Describes why a file stays, with the instructions that make its move possible.
fn reason_text(memory: &Path, reason: &Reason) -> String {
    match reason {
        Reason::Move(MoveError::SamePlace { to, from, skill }) => {
            let hint = if from == skill {
                older_jobs::rename_hint(memory, from)
            } else {
                format!("{} is a link to {from}. Remove that link first", memory.join(skill).display())
            };
            format!("it is already at {}: {hint}", to.display())
        }
        other => other.to_string(),
    }
}

/// Refuses a memory, source directory or target directory of another user, as `bloomery run` does.
fn check_owner(memory: &Path, from: &str, moves: &[Move]) -> Result<(), Error> {
    // A target path begins with the name of the Skill.
    let skills: BTreeSet<Cow<'_, str>> =
        moves.iter().filter_map(|step| step.to.iter().next()).map(OsStr::to_string_lossy).collect();
    let mut names = iter::once(from).chain(skills.iter().map(AsRef::as_ref));
    names.try_for_each(|name| SkillDirectory::new(memory, name).check_owner())?;
    Ok(())
}

/// Prints a line. A closed pipe does not stop the moves.
fn print_line(out: &mut impl Write, line: &str) -> Result<(), Error> {
    output::write(out, &format!("{}\n", text::sanitized_line(line))).map(drop)
}
