//! What a command comes to, as an exit code. Scripts read these: a code never gets another meaning.

use bloomery_crds::outcome::Phase;
use std::process::ExitCode;

/// How a line begins that says what is wrong with a command.
pub const PREFIX: &str = "bloomery: ";

/// What a command comes to. Wrong usage that clap finds is its to say, and 2 too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Nothing is wrong; of a Job: it succeeded.
    Good = 0,
    /// Something is wrong, and it was said.
    Bad = 1,
    /// What was given cannot be used: nothing was begun, or nothing was done to what had been.
    Usage = 2,
    /// The Job failed.
    Failed = 3,
    /// The Job was refused: its goal is none of the Skill's.
    Refused = 4,
    /// The Job was escalated: a person has to look.
    Escalated = 5,
    /// It is too late: it is decided, or the time is up.
    Late = 6,
    /// The Job is parked, and can go on.
    Parked = 7,
    /// Another process has taken the Job over.
    Superseded = 8,
    /// The Job was cancelled.
    Cancelled = 9,
    /// A second ^C ended the process at once; the Job can go on.
    Interrupted = 130,
}

impl Exit {
    /// The code of a Job that rests in a phase.
    pub fn of(phase: Phase) -> Self {
        match phase {
            Phase::Succeeded => Self::Good,
            Phase::Failed => Self::Failed,
            Phase::Refused => Self::Refused,
            Phase::Escalated => Self::Escalated,
            Phase::Cancelled => Self::Cancelled,
            Phase::Pending
            | Phase::Queued
            | Phase::Starting
            | Phase::Running
            | Phase::AwaitingApproval
            | Phase::AwaitingReply
            | Phase::Finalizing => Self::Parked,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// Why a command cannot do what it was asked: a sentence for people, and what the process exits with.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Trouble {
    /// What the process exits with.
    pub exit: Exit,
    /// What happened, and what to do about it.
    pub message: String,
}

impl Trouble {
    /// What was given cannot be used.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into() }
    }

    /// Something failed on the way.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { exit: Exit::Bad, message: message.into() }
    }

    /// Several at once, each on a line that begins like the first of all. The process exits as for the first.
    pub fn of(faults: Vec<Self>) -> Self {
        let exit = faults.first().map_or(Exit::Usage, |first| first.exit);
        let messages: Vec<String> = faults.into_iter().map(|fault| fault.message).collect();
        Self { exit, message: messages.join(&format!("\n{PREFIX}")) }
    }
}

/// What is wrong with a command, gathered so that all of it is told at once.
#[derive(Debug, Default)]
pub struct Faults(Vec<Trouble>);

impl Faults {
    /// What could be found; or nothing, and why not is kept.
    pub fn sift<T>(&mut self, found: Result<T, Trouble>) -> Option<T> {
        found.map_err(|fault| self.add(fault)).ok()
    }

    /// Keeps a fault.
    pub fn add(&mut self, fault: Trouble) {
        self.0.push(fault);
    }

    /// Whether something was kept.
    pub fn are_there(&self) -> bool {
        !self.0.is_empty()
    }

    /// All that was kept.
    pub fn told(self) -> Trouble {
        Trouble::of(self.0)
    }
}
