//! `bloomery migrate`: an older memory held the jobs of all Skills in one directory (seed 000, "What This Replaces"). Each
//! goes to the slag of its Skill; nothing is replaced, and nothing is lost.

mod plan;

use crate::args::MigrateArgs;
use crate::exit::{Exit, Trouble};
use crate::run::memory::{self, Slag};
use crate::{output, plain};
pub use plan::{MAX_JOB, without_mark};
use plan::{Move, Stay, plan};
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::iter;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

/// The directory in an older memory that held the jobs of all Skills.
pub const FROM: &str = "workspace";

/// Shows what would be moved; with `--apply`, moves it.
///
/// # Errors
/// If there is no memory, it is another user's, or what is to be migrated cannot be looked at.
pub fn run(args: &MigrateArgs) -> Result<Exit, Trouble> {
    let from = source(&args.memory, &args.from)?;
    if is_slag(&from) {
        return Err(Trouble::usage(format!("{} is the slag of a Skill: it holds its own jobs", from.display())));
    }
    memory::slags(&args.memory)?;
    if !from.try_exists().unwrap_or(true) {
        anstream::eprintln!("there is no {}: nothing is left to be migrated", plain::line(&from.display().to_string()));
        return Ok(Exit::Good);
    }
    let unread = |error| Trouble::failed(format!("{} cannot be read: {error}", from.display()));
    let _alone = alone(&from, unread)?;
    let plan = plan(&args.memory, &from, &args.skill).map_err(unread)?;
    owned(&args.memory, &args.from, &plan.moves)?;
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

/// The directory that is migrated, which has to be one in the memory.
fn source(memory: &Path, name: &str) -> Result<PathBuf, Trouble> {
    let from = memory.join(name);
    let named = Path::new(name).components();
    let is_below = named.clone().count() > 0 && named.into_iter().all(|part| matches!(part, Component::Normal(_)));
    let leads_out = match (memory.canonicalize(), from.canonicalize()) {
        (Ok(memory), Ok(from)) => from == memory || !from.starts_with(&memory),
        // What is not there, or may not be looked at, is said by whoever needs it.
        _ => false,
    };
    if is_below && !leads_out {
        return Ok(from);
    }
    Err(Trouble::usage(format!(
        "--from {}: it has to be a directory in the memory {}, and leads out of it",
        plain::line(name),
        memory.display()
    )))
}

/// Keeps others out until it is dropped: of two at once, each would report the other's moves as files that stay.
fn alone(from: &Path, unread: impl FnOnce(io::Error) -> Trouble) -> Result<File, Trouble> {
    let dir = File::open(from).map_err(unread)?;
    match dir.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Trouble::failed(format!(
            "another `bloomery migrate` is at work in {}: try again when it is done",
            from.display()
        ))),
        // Where a file system knows no locks, two at once may report wrongly, and lose nothing.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(dir),
    }
}

/// Refuses what is somebody else's, as `run` does: the memory, what is migrated, and each slag that something goes to.
fn owned(memory: &Path, from: &str, moves: &[Move]) -> Result<(), Trouble> {
    let to: BTreeSet<Cow<'_, str>> =
        moves.iter().filter_map(|step| step.to.iter().next()).map(OsStr::to_string_lossy).collect();
    iter::once(from).chain(to.iter().map(AsRef::as_ref)).try_for_each(|name| Slag::of(memory, name).own())
}

/// Whether a directory of a memory is the one that held the jobs of all Skills, by the name that it had.
pub fn holds_older_jobs(dir: &Path) -> bool {
    dir.file_name().is_some_and(|name| name == FROM) && !is_slag(dir)
}

/// Whether an older job names this Skill: then it is where it belongs.
pub fn is_of(job: &Path, skill: &str) -> bool {
    plan::skill_of(job).is_ok_and(|named| named.as_deref() == Some(skill))
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
    let (from, to) = (memory.join(&step.from), memory.join(&step.to));
    if is_one_place(&from, &to) {
        return Err(format!("{} is the same place{}", step.to.display(), way_out(memory, step)));
    }
    match fs::symlink_metadata(&to) {
        Ok(_) if same(&from, &to) => Ok(()),
        Ok(_) => Err(format!("{} is there, and is another", step.to.display())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(format!("{} cannot be looked at: {error}", step.to.display())),
    }
}

/// What to do where a job's Skill has the directory that is migrated: it is called the same, or is a link to it.
fn way_out(memory: &Path, step: &Move) -> String {
    let first = |path: &Path| path.iter().next().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let (from, skill) = (first(&step.from), first(&step.to));
    if from == skill {
        format!(": {}", rename(memory, &from))
    } else {
        format!(": {} leads to {from}. Remove that link first", memory.join(skill).display())
    }
}

/// How the jobs of an older memory are moved out of a directory that a Skill of its name needs.
pub fn rename(memory: &Path, from: &str) -> String {
    let shell = |path: PathBuf| plain::quoted(&path.display().to_string());
    let older = format!("{from}-older");
    let named =
        if memory == Path::new("memory") { String::new() } else { format!(" --memory {}", shell(memory.to_owned())) };
    format!(
        "give the directory another name, and move what is in it from there: mv {} {} && bloomery migrate{named} --from {} \
         --apply. Or put the Skill's file there, as {}, if all of it is that Skill's",
        shell(memory.join(from)),
        shell(memory.join(&older)),
        plain::quoted(&older),
        memory.join(from).join(crate::run::skill::FILE).display()
    )
}

/// Whether two paths are one entry of one directory, by whatever links they lead there. Two names of one file in two
/// directories are not: a move that was cut short leaves these.
fn is_one_place(one: &Path, other: &Path) -> bool {
    let directory =
        |file: &Path| file.parent().and_then(|dir| fs::metadata(dir).ok()).map(|dir| (dir.dev(), dir.ino()));
    one.file_name() == other.file_name() && directory(one).is_some_and(|one| directory(other) == Some(one))
}

/// Moves a file. It has both names for a moment: whenever this is cut short, a second time finishes it.
fn perform(memory: &Path, step: &Move) -> Result<(), String> {
    let (from, to) = (memory.join(&step.from), memory.join(&step.to));
    let dir = to.parent().unwrap_or(memory);
    fs::create_dir_all(dir).map_err(|error| format!("{} cannot be made: {error}", dir.display()))?;
    foresee(memory, step)?;
    match fs::hard_link(&from, &to) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {
            return Err(format!(
                "{} is on another file system than {}, and a file is moved within one only: copy it there, and remove it \
                 here",
                step.to.display(),
                step.from.display()
            ));
        }
        linked => linked.map_err(|error| error.to_string())?,
    }
    // Nothing is removed of which there is no other.
    if is_one_place(&from, &to) || !same(&from, &to) {
        return Err(format!("{} is not what was put there", step.to.display()));
    }
    // The new name is on disk before the old one goes.
    File::open(dir).and_then(|dir| dir.sync_all()).map_err(|error| error.to_string())?;
    fs::remove_file(&from).map_err(|error| format!("it is at its place, and cannot be removed here: {error}"))
}

/// Whether there are two files, or one by two names, that hold the same.
fn same(one: &Path, other: &Path) -> bool {
    let open = |file: &Path| {
        let is_file = fs::symlink_metadata(file).is_ok_and(|metadata| metadata.is_file());
        is_file.then(|| File::open(file).ok()).flatten()
    };
    let (Some(mut one), Some(mut other)) = (open(one), open(other)) else { return false };
    let (Ok(first), Ok(second)) = (one.metadata(), other.metadata()) else { return false };
    if (first.dev(), first.ino()) == (second.dev(), second.ino()) {
        return first.nlink() > 1;
    }
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
