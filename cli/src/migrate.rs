//! `bloomery migrate`: an older memory held the jobs of all Skills in one directory (seed 000, "What This Replaces"). Each
//! goes to the slag of its Skill; nothing is replaced, and nothing is lost.

mod plan;

use crate::args::MigrateArgs;
use crate::exit::{Exit, Trouble};
use crate::run::memory;
use crate::{output, plain};
pub use plan::MAX_JOB;
use plan::{Move, Stay, plan};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

/// The directory in an older memory that held the jobs of all Skills.
pub const FROM: &str = "workspace";

/// Shows what would be moved; with `--apply`, moves it.
///
/// # Errors
/// If there is no memory, or what is to be migrated cannot be looked at.
pub fn run(args: &MigrateArgs) -> Result<Exit, Trouble> {
    let from = args.memory.join(&args.from);
    if is_slag(&from) {
        return Err(Trouble::usage(format!("{} is the slag of a Skill: it holds its own jobs", from.display())));
    }
    memory::slags(&args.memory)?;
    if !from.try_exists().unwrap_or(true) {
        anstream::eprintln!("there is no {}: nothing is left to be migrated", plain::line(&from.display().to_string()));
        return Ok(Exit::Good);
    }
    let plan = plan(&args.memory, &from, &args.skill)
        .map_err(|error| Trouble::failed(format!("{} cannot be read: {error}", from.display())))?;
    let mut stays = plan.stays;
    let mut moved = 0_usize;
    let mut out = anstream::stdout().lock();
    for step in &plan.moves {
        match if args.apply { perform(&args.memory, step) } else { foresee(&args.memory, step) } {
            Ok(()) => {
                moved += 1;
                say(&mut out, &format!("{} -> {}", step.from.display(), step.to.display()))?;
            }
            Err(why) => stays.push(Stay { file: step.from.clone(), why }),
        }
    }
    for Stay { file, why } in &stays {
        say(&mut out, &format!("{} stays: {why}", file.display()))?;
    }
    if args.apply {
        plan::remove_empty(&from);
    }
    let done = if args.apply { "moved" } else { "to be moved; --apply does it" };
    anstream::eprintln!("{moved} files {done}; {} stay", stays.len());
    Ok(if stays.is_empty() { Exit::Good } else { Exit::Bad })
}

/// Whether a directory of a memory is the one that held the jobs of all Skills, by the name that it had.
pub fn holds_older_jobs(dir: &Path) -> bool {
    dir.file_name().is_some_and(|name| name == FROM) && !is_slag(dir)
}

/// Whether a directory is that of a Skill.
fn is_slag(dir: &Path) -> bool {
    dir.join(crate::run::skill::FILE).exists()
}

/// Whoever reads may have seen enough: what was begun is finished all the same.
fn say(out: &mut impl Write, line: &str) -> Result<(), Trouble> {
    output::write(out, &format!("{}\n", plain::line(line))).map(drop)
}

/// Why a move would not be made.
fn foresee(memory: &Path, step: &Move) -> Result<(), String> {
    let to = memory.join(&step.to);
    match fs::symlink_metadata(&to) {
        Ok(_) if same(&memory.join(&step.from), &to) => Ok(()),
        Ok(_) => Err(format!("{} is there, and is another", step.to.display())),
        Err(_) => Ok(()),
    }
}

/// Moves a file. It has both names for a moment: whenever this is cut short, a second time finishes it.
fn perform(memory: &Path, step: &Move) -> Result<(), String> {
    let (from, to) = (memory.join(&step.from), memory.join(&step.to));
    let dir = to.parent().unwrap_or(memory);
    fs::create_dir_all(dir).map_err(|error| format!("{} cannot be made: {error}", dir.display()))?;
    match fs::hard_link(&from, &to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => foresee(memory, step)?,
        linked => linked.map_err(|error| error.to_string())?,
    }
    // The new name is on disk before the old one goes.
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(|error| error.to_string())?;
    fs::remove_file(&from).map_err(|error| format!("it is at its place, and cannot be removed here: {error}"))
}

/// Whether two files hold the same.
fn same(one: &Path, other: &Path) -> bool {
    let open = |file: &Path| {
        let is_file = fs::symlink_metadata(file).is_ok_and(|metadata| metadata.is_file());
        is_file.then(|| File::open(file).ok()).flatten()
    };
    let (Some(mut one), Some(mut other)) = (open(one), open(other)) else { return false };
    let mut buffers = [[0; 8192], [0; 8192]];
    let [left, right] = &mut buffers;
    loop {
        let (Ok(read), Ok(matching)) = (fill(&mut one, left), fill(&mut other, right)) else { return false };
        if read != matching || left.get(..read) != right.get(..matching) {
            return false;
        }
        if read == 0 {
            return true;
        }
    }
}

fn fill(file: &mut File, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest)? {
            0 => break,
            read => filled += read,
        }
    }
    Ok(filled)
}
