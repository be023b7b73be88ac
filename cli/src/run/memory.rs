//! The memory: a directory that stands for a tenant, with one directory below it for each Skill, its slag (seed 000).

use crate::exit::Trouble;
use crate::migrate;
use bloomery_worker::log::{self, Error, files::Disk};
use bloomery_worker::{focus, recent, record, tools, trace};
use std::collections::BTreeSet;
use std::collections::hash_map::RandomState;
use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::iter::once;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

/// What a slag has from the beginning, besides its `skill.yaml`.
const DIRECTORIES: [&str; 3] = [log::JOBS, trace::DIR, focus::DIR];

/// What may be in a slag, and is written to, or told to a model.
const USED: [&str; 5] = [log::JOBS, trace::DIR, focus::DIR, recent::DIR, tools::BANK];

/// The directory of one Skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slag {
    /// The Skill's name.
    pub name: String,
    /// Its directory.
    pub dir: PathBuf,
}

impl Slag {
    /// The slag of a Skill in a memory, whether it is there or not.
    pub fn of(memory: &Path, name: &str) -> Self {
        Self { name: name.to_owned(), dir: memory.join(name) }
    }

    /// The directory of a Job's log.
    pub fn log(&self, key: &str) -> PathBuf {
        self.dir.join(log::JOBS).join(key)
    }

    /// The record of a Job.
    pub fn record(&self, key: &str) -> PathBuf {
        record::file(&self.dir, key)
    }

    /// The keys of its Jobs, in their order: of those that have a log, and of those that have a record only.
    pub fn jobs(&self) -> Vec<String> {
        let names = names(&self.dir.join(log::JOBS)).unwrap_or_default();
        let key_of = |name: &String| {
            let recorded = name.strip_suffix(".json").filter(|key| !key.is_empty() && self.record(key).is_file());
            recorded.or_else(|| self.log(name).is_dir().then_some(name.as_str())).map(str::to_owned)
        };
        let keys: BTreeSet<String> = names.iter().filter_map(key_of).collect();
        keys.into_iter().collect()
    }

    /// Refuses the directory of somebody else, though it may be written: root may write all, and a tenant is one user's.
    /// What is not there yet belongs to whoever has the memory.
    ///
    /// # Errors
    /// If the memory, the slag, or a directory in it that is used is another user's, or cannot be looked into.
    pub fn own(&self) -> Result<(), Trouble> {
        own(self.dir.parent().unwrap_or(&self.dir))?;
        once(self.dir.clone()).chain(USED.map(|name| self.dir.join(name))).try_for_each(|dir| own(&dir))
    }

    /// Whether jobs of an older memory are in it, of others than the Skill: what has a record only, where no Skill is.
    pub fn holds_older_jobs(&self) -> bool {
        let is_older = |key: &String| !self.log(key).is_dir() && !migrate::is_of(&self.record(key), &self.name);
        migrate::holds_older_jobs(&self.dir) && self.jobs().iter().any(is_older)
    }

    /// Makes what is missing, and tries whether a log can be kept there.
    ///
    /// # Errors
    /// If it cannot: not this user's to write, read-only, full, or without what keeps a log from forking.
    pub fn open(&self, writer: &str) -> Result<(), Trouble> {
        self.own()?;
        let inner = DIRECTORIES.map(|name| self.dir.join(name));
        let dirs = inner.iter().map(PathBuf::as_path).chain(self.dir.ancestors());
        let missing: Vec<&Path> = dirs.filter(|dir| !dir.as_os_str().is_empty() && !dir.exists()).collect();
        self.make(writer).inspect_err(|_| {
            // The deepest first, and none that holds anything.
            for dir in &missing {
                drop(fs::remove_dir(dir));
            }
        })
    }

    fn make(&self, writer: &str) -> Result<(), Trouble> {
        make_private(self.dir.parent().unwrap_or(&self.dir)).map_err(|error| refused(&self.dir, &error))?;
        fs::create_dir_all(&self.dir).map_err(|error| refused(&self.dir, &error))?;
        log::check_volume(&Disk, &self.dir, writer).map_err(|error| told(&error))?;
        for name in DIRECTORIES {
            let dir = self.dir.join(name);
            fs::create_dir_all(&dir).map_err(|error| refused(&dir, &error))?;
        }
        // What was made must be there after a loss of power, or a log in it would not.
        for dir in [&self.dir, self.dir.parent().unwrap_or(&self.dir)] {
            File::open(dir).and_then(|dir| dir.sync_all()).map_err(|error| refused(dir, &error))?;
        }
        Ok(())
    }
}

/// Refuses a directory of a memory that is somebody else's; one that is not there is nobody's.
///
/// # Errors
/// If it is another user's, or nobody may say whose it is.
pub fn own(dir: &Path) -> Result<(), Trouble> {
    let owner = |dir: &Path| fs::metadata(dir).map(|dir| dir.uid());
    match (owner(dir), owner(Path::new("/proc/self"))) {
        (Ok(owner), Ok(me)) if owner != me => Err(Trouble::usage(format!(
            "the memory {} belongs to the user {owner}, and you are {me}: it may be another tenant's. Name one of yours with \
             --memory",
            dir.display()
        ))),
        (Err(error), _) if error.kind() == io::ErrorKind::PermissionDenied => Err(refused(dir, &error)),
        _ => Ok(()),
    }
}

/// Makes a memory, where there is none, that only its user can look into: goals and results are nobody else's. One that is
/// there stays as it was made.
fn make_private(memory: &Path) -> io::Result<()> {
    if let Some(parent) = memory.parent() {
        fs::create_dir_all(parent)?;
    }
    match DirBuilder::new().mode(0o700).create(memory) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && memory.is_dir() => Ok(()),
        made => made,
    }
}

/// All slags of a memory, in the order of their names.
///
/// # Errors
/// If there is no such directory.
pub fn slags(memory: &Path) -> Result<Vec<Slag>, Trouble> {
    let names = names(memory).map_err(|error| refused(memory, &error))?.into_iter();
    Ok(names.map(|name| Slag::of(memory, &name)).filter(|slag| slag.dir.join(log::JOBS).is_dir()).collect())
}

/// The directories that make a memory up: itself, those in it, and those that a link in one of these leads to. Links may
/// lead out of the memory, to what is bound.
pub fn directories(memory: &Path) -> Vec<PathBuf> {
    let within = |dir: &Path| names(dir).unwrap_or_default().into_iter().map(|name| dir.join(name)).collect::<Vec<_>>();
    let first: Vec<PathBuf> = within(memory).into_iter().filter(|path| path.is_dir()).collect();
    let linked = first.iter().flat_map(|dir| within(dir)).filter(|path| path.is_symlink() && path.is_dir());
    let linked: Vec<PathBuf> = linked.collect();
    [vec![memory.to_owned()], first, linked].concat()
}

/// What is in a directory, in the order of names.
fn names(dir: &Path) -> io::Result<Vec<String>> {
    let mut names: Vec<String> =
        fs::read_dir(dir)?.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// The one slag that has the log of a Job; `skill` names it, where several have.
///
/// # Errors
/// If none has, or several have and none is named.
pub fn holder(memory: &Path, skill: Option<&str>, key: &str) -> Result<Slag, Trouble> {
    let has_log = |slag: &Slag| slag.log(key).is_dir();
    one(memory, skill, key, has_log).map_err(|none| match holder_of_any(memory, skill, key) {
        Ok(slag) if !has_log(&slag) => Trouble::usage(format!(
            "the Job {key} of the Skill {} has no log, as jobs of an older memory have none: there is only {}, which \
             `bloomery get {key}` shows",
            slag.name,
            slag.record(key).display()
        )),
        _ => none,
    })
}

/// The one slag that has the log of a Job, or its record.
///
/// # Errors
/// If none has, or several have and none is named.
pub fn holder_of_any(memory: &Path, skill: Option<&str>, key: &str) -> Result<Slag, Trouble> {
    one(memory, skill, key, |slag| slag.log(key).is_dir() || slag.record(key).is_file())
}

fn one(memory: &Path, skill: Option<&str>, key: &str, has: impl Fn(&Slag) -> bool) -> Result<Slag, Trouble> {
    let mut holders = slags(memory).unwrap_or_default();
    holders.retain(|slag| has(slag) && skill.is_none_or(|skill| skill == slag.name));
    match holders.as_slice() {
        [slag] => Ok(slag.clone()),
        [] => {
            let of = skill.map(|skill| format!(" of the Skill {skill}")).unwrap_or_default();
            Err(Trouble::usage(format!("the memory {} has no Job {key}{of}", memory.display())))
        }
        several => {
            let names: Vec<&str> = several.iter().map(|slag| slag.name.as_str()).collect();
            Err(Trouble::usage(format!(
                "several Skills have a Job {key}: say which with --skill: {}",
                names.join(", ")
            )))
        }
    }
}

/// A name for what this process writes that no other process has, here or on another machine.
pub fn writer() -> String {
    format!("local-{}-{}", std::process::id(), drawn())
}

/// What nobody else has drawn.
pub fn drawn() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

/// What went wrong with a log, in the words of a machine without an operator.
pub fn told(error: &Error) -> Trouble {
    match error {
        Error::NotWritable { dir, source } => not_writable(dir, source),
        Error::ReadOnly { path, source } => read_only(path, source),
        Error::Full { path, source } => full(path, source),
        Error::Io { path, source, .. } if source.kind() == io::ErrorKind::NotADirectory => {
            Trouble::usage(format!("{} is not in a directory: {source}", path.display()))
        }
        Error::Unsupported { dir, what, detail } => Trouble::usage(format!(
            "the memory {} has no {what} ({detail}), so two processes could write one log: name a directory on a local \
             disk with --memory",
            dir.display()
        )),
        Error::Broken { file, line, reason } => Trouble::failed(format!(
            "the log is broken at {}, line {line}: {reason}. It is not continued",
            file.display()
        )),
        other => Trouble::failed(other.to_string()),
    }
}

/// Why a directory of the memory cannot be made or used.
fn refused(dir: &Path, error: &io::Error) -> Trouble {
    match error.kind() {
        io::ErrorKind::PermissionDenied => not_writable(dir, error),
        io::ErrorKind::ReadOnlyFilesystem => read_only(dir, error),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => full(dir, error),
        _ => Trouble::usage(format!("the memory cannot be used: {}: {error}", dir.display())),
    }
}

fn not_writable(dir: &Path, error: &io::Error) -> Trouble {
    // What is not there yet belongs to whoever has the directory above it.
    let owner = dir.ancestors().find_map(|dir| fs::metadata(dir).ok()).map(|dir| dir.uid());
    let owner = owner.map(|uid| format!(" It belongs to the user {uid}.")).unwrap_or_default();
    Trouble::usage(format!(
        "the memory {} may not be written: {error}.{owner} It may be another tenant's: name one of yours with --memory",
        dir.display()
    ))
}

fn read_only(dir: &Path, error: &io::Error) -> Trouble {
    Trouble::usage(format!("the memory {} is read-only: {error}. Name another with --memory", dir.display()))
}

fn full(dir: &Path, error: &io::Error) -> Trouble {
    Trouble::usage(format!(
        "there is no room left for the memory {}: {error}. Make some, or name another with --memory; what is in the log \
         stays, and a Job goes on from there",
        dir.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use rstest::rstest;

    #[rstest]
    #[case(io::ErrorKind::PermissionDenied, "It may be another tenant's")]
    #[case(io::ErrorKind::ReadOnlyFilesystem, "is read-only")]
    #[case(io::ErrorKind::StorageFull, "there is no room left")]
    #[case(io::ErrorKind::QuotaExceeded, "there is no room left")]
    #[case(io::ErrorKind::NotADirectory, "cannot be used")]
    fn a_memory_that_cannot_be_used_says_why_and_what_to_do(#[case] kind: io::ErrorKind, #[case] says: &str) {
        let trouble = refused(Path::new("/no/such"), &kind.into());
        assert_eq!(trouble.exit, Exit::Usage);
        assert!(trouble.message.contains(says) && trouble.message.contains("/no/such"), "{trouble}");
    }

    #[test]
    fn what_the_log_finds_out_is_told_without_words_of_a_cluster() {
        let (dir, path) = (PathBuf::from("/m"), PathBuf::from("/m/jobs"));
        let source = || io::Error::from(io::ErrorKind::PermissionDenied);
        for error in [
            Error::NotWritable { dir: dir.clone(), source: source() },
            Error::Full { path: path.clone(), source: source() },
            Error::ReadOnly { path: path.clone(), source: source() },
            Error::Unsupported { dir, what: "hard links", detail: "Operation not permitted".into() },
        ] {
            let trouble = told(&error);
            assert_eq!(trouble.exit, Exit::Usage);
            for word in ["pod", "claim", "volume", "fsGroup"] {
                assert!(!trouble.message.contains(word), "{trouble}");
            }
        }
    }

    #[test]
    fn a_slag_is_made_with_what_it_needs_and_found_by_its_jobs() {
        let memory = tempfile::tempdir().unwrap();
        let slag = Slag::of(memory.path(), "cs-tier-1");
        slag.open("w").unwrap();
        slag.open("w").unwrap();
        let mut names: Vec<_> =
            fs::read_dir(&slag.dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        assert_eq!(names, ["focus-cache", "jobs", "logs"]);
        assert!(holder(memory.path(), None, "k").is_err());
        fs::create_dir(slag.log("k")).unwrap();
        assert_eq!(holder(memory.path(), None, "k").unwrap(), slag);
        let other = Slag::of(memory.path(), "other");
        fs::create_dir_all(other.log("k")).unwrap();
        assert!(holder(memory.path(), None, "k").unwrap_err().message.contains("cs-tier-1, other"));
        assert_eq!(holder(memory.path(), Some("other"), "k").unwrap(), other);
    }

    #[test]
    fn a_memory_that_is_made_is_its_users_alone() {
        let dir = tempfile::tempdir().unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
        let fresh = dir.path().join("new/memory");
        Slag::of(&fresh, "greeter").open("w").unwrap();
        assert_eq!(mode(&fresh), 0o700);
        let theirs = dir.path().join("theirs");
        fs::create_dir(&theirs).unwrap();
        let before = mode(&theirs);
        Slag::of(&theirs, "greeter").open("w").unwrap();
        assert_eq!(mode(&theirs), before);
        fs::write(dir.path().join("file"), "").unwrap();
        assert!(make_private(&dir.path().join("file")).is_err());
    }

    #[test]
    fn no_two_writers_have_one_name_and_each_is_a_file_name() {
        let (one, other) = (writer(), writer());
        assert_ne!(one, other);
        assert!(one.len() <= 64 && one.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'), "{one}");
    }
}
