//! Exit codes of commands. Scripts depend on them: a code never gets another meaning.

use bloomery_crds::outcome::Phase;
use std::process::ExitCode;

/// The exit code of a command. For invalid arguments, clap also exits with 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// The command succeeded, or its Job did.
    Success = 0,
    /// The command failed, and has reported why.
    Error = 1,
    /// Invalid arguments or input. Nothing was changed.
    Usage = 2,
    /// The Job failed.
    Failed = 3,
    /// The Job was refused: its goal is not one of the Skill's.
    Refused = 4,
    /// The Job was escalated: a person has to act.
    Escalated = 5,
    /// The command came too late, or a timeout has passed.
    TooLate = 6,
    /// The Job is parked, and can be resumed.
    Parked = 7,
    /// Another process has taken over the Job.
    Superseded = 8,
    /// The Job was cancelled.
    Cancelled = 9,
    /// A second ^C stopped the process at once; the Job can be resumed.
    Interrupted = 130,
}

impl Exit {
    /// Returns the exit code for a Job that has ended or waits in this phase.
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
            | Phase::AwaitingJob
            | Phase::Finalizing => Self::Parked,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
