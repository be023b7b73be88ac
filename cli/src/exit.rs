//! What a command comes to, as an exit code. Scripts read these: a code never gets another meaning.

use bloomery_crds::outcome::Phase;
use std::process::ExitCode;

/// What a command comes to. Wrong usage that clap finds is its to say, and 2 too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// Nothing is wrong; of a Job: it succeeded.
    Success = 0,
    /// Something is wrong, and it was said.
    Error = 1,
    /// What was given cannot be used: nothing was begun, or nothing was done to what had been.
    Usage = 2,
    /// The Job failed.
    Failed = 3,
    /// The Job was refused: its goal is none of the Skill's.
    Refused = 4,
    /// The Job was escalated: a person has to look.
    Escalated = 5,
    /// It is too late: it is decided, or the time is up.
    TooLate = 6,
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
    pub fn of_phase(phase: Phase) -> Self {
        match phase {
            Phase::Succeeded => Self::Success,
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
