//! The ledger of a Skill's limits: `limits/` in the skill directory (`docs/explanation/engine.md`, section 3).
//!
//! Jobs change the ledger at the same time, on one machine or on a network file system, and each may freeze or be killed at any point. So
//! there is no lock. Each file is a whole state of the ledger, named by its number and never changed. A worker reads the latest state,
//! writes the next one under a temporary name, and hard-links it to the next number, which only one worker can do. The log claims names
//! in the same way.
//!
//! Old states are removed, so a worker that was frozen for long may link a number that is free again. A change has happened only if the
//! latest state contains it. The worker checks this after each link.

use bloomery_crds::Digest;
use bloomery_engine::event::ReservationAnswer;
use bloomery_engine::rules::limits::{Ledger, Reservation};
use bloomery_journal::files::Files;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// The name of the ledger's directory in a skill directory.
pub const DIR: &str = "limits";

/// The limit on attempts to change the ledger. An attempt fails if another worker changes it at the same time.
const MAX_ATTEMPTS: usize = 64;

/// The number of states that are kept. A worker that reads a state while as many newer ones are written gets an error, and holds its call.
const KEPT_STATES: u64 = 16;

/// The largest state that is read, in bytes.
const MAX_STATE_BYTES: usize = 4 * 1024 * 1024;

/// The reason why the ledger cannot be read or changed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file system refused an operation.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A state is not one that a worker has written.
    #[error("{0} cannot be read: {1}")]
    Unreadable(String, String),
    /// Other workers change the ledger all the time.
    #[error("other Jobs keep changing it")]
    Contended,
}

/// The ledger, as one worker uses it.
#[derive(Debug, Clone)]
pub struct LimitLedger {
    skill_dir: PathBuf,
    writer: String,
}

impl LimitLedger {
    /// Returns the ledger in a skill directory. `writer` is unique to this worker.
    pub fn new(skill_dir: &Path, writer: &str) -> Self {
        Self { skill_dir: skill_dir.to_owned(), writer: writer.to_owned() }
    }

    /// Reserves the amounts of a call durably, if they are within the limits. A reservation under the same key is made once.
    pub fn reserve(&self, files: &impl Files, reservation: &Reservation<'_>) -> ReservationAnswer {
        let mut answer = None;
        let changed = now().and_then(|now| {
            self.change(files, &|ledger| ledger.contains(&reservation.key), &mut |ledger| {
                let (decided, next) = reservation.decide(ledger, now);
                answer = Some(decided);
                next
            })
        });
        match (changed, answer) {
            (Ok(()), Some(answer)) => answer,
            (Ok(()), None) => reservation.failed("it was not read".to_owned()),
            (Err(error), _) => reservation.failed(error.to_string()),
        }
    }

    /// Gives the amounts of a call back that is known not to have happened.
    ///
    /// # Errors
    /// If the ledger cannot be changed. Then the call counts until its window is over.
    pub fn give_back(&self, files: &impl Files, key: &Digest) -> Result<(), Error> {
        self.change(files, &|ledger| !ledger.contains(key), &mut |ledger| ledger.without(key))
    }

    /// Replaces the latest state by the one that `next` returns for it. Does nothing if `next` returns none. `has_happened` says whether a
    /// state contains the change.
    fn change(
        &self,
        files: &impl Files,
        has_happened: &dyn Fn(&Ledger) -> bool,
        next: &mut dyn FnMut(&Ledger) -> Option<Ledger>,
    ) -> Result<(), Error> {
        let dir = self.dir();
        files.create_dir(&dir)?;
        files.sync_dir(&self.skill_dir)?;
        for _ in 0..MAX_ATTEMPTS {
            let (number, ledger) = self.latest(files)?;
            let Some(next) = next(&ledger) else {
                // The change may be that of a lost worker, which has not synced it.
                files.sync_dir(&dir)?;
                return Ok(());
            };
            let linked = self.link(files, number + 1, &next);
            let (latest, ledger) = self.latest(files)?;
            if has_happened(&ledger) {
                files.sync_dir(&dir)?;
                self.prune(files, latest);
                return Ok(());
            }
            if let Err(error) = linked
                && error.kind() != io::ErrorKind::AlreadyExists
            {
                return Err(error.into());
            }
        }
        Err(Error::Contended)
    }

    /// Links a state to its number.
    fn link(&self, files: &impl Files, number: u64, ledger: &Ledger) -> io::Result<()> {
        let dir = self.dir();
        let temporary = dir.join(format!(".tmp-{}", self.writer));
        let _ = files.remove(&temporary);
        files.create(&temporary, &serde_json::to_vec(ledger)?)?;
        let linked = files.link(&temporary, &dir.join(name(number)));
        let _ = files.remove(&temporary);
        linked
    }

    /// Returns the latest state and its number; an empty one with 0 if there is none. A listing may be stale on a network file system, so
    /// the numbers after the listed ones are looked up by name.
    fn latest(&self, files: &impl Files) -> Result<(u64, Ledger), Error> {
        let listed = files.list(&self.dir())?.iter().filter_map(|name| parse(name)).max();
        let mut number = listed.unwrap_or_default();
        let mut content = listed.map(|number| files.read(&self.dir().join(name(number)))).transpose()?;
        loop {
            match files.read(&self.dir().join(name(number + 1))) {
                Ok(newer) => (number, content) = (number + 1, Some(newer)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(error) => return Err(error.into()),
            }
        }
        let Some(content) = content else { return Ok((0, Ledger::default())) };
        let unreadable = |why: String| Error::Unreadable(name(number), why);
        if content.len() > MAX_STATE_BYTES {
            return Err(unreadable(format!("it has {} bytes", content.len())));
        }
        let ledger = serde_json::from_slice(&content).map_err(|error| unreadable(error.to_string()))?;
        Ok((number, ledger))
    }

    /// Removes old states. A failure has no effect: the next change removes them.
    fn prune(&self, files: &impl Files, latest: u64) {
        for listed in files.list(&self.dir()).unwrap_or_default() {
            if parse(&listed).is_some_and(|number| number + KEPT_STATES <= latest) {
                let _ = files.remove(&self.dir().join(listed));
            }
        }
    }

    fn dir(&self) -> PathBuf {
        self.skill_dir.join(DIR)
    }
}

/// Returns the seconds since 1970 by the clock of this machine.
fn now() -> Result<u64, Error> {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map(|since| since.as_secs()).map_err(|error| io::Error::other(error).into())
}

/// Returns the file name of a state.
fn name(number: u64) -> String {
    format!("{number:020}.json")
}

/// Returns the number of a state from its file name; `None` for other files.
fn parse(name: &str) -> Option<u64> {
    let digits = name.strip_suffix(".json")?;
    if digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit()) { digits.parse().ok() } else { None }
}

#[cfg(test)]
mod tests;
