//! What the commands take that speak with Jobs on a cluster.

use super::cluster::{ClusterArgs, ObjectOutput};
use super::values::{Error, name};
use bloomery_crds::nearest;
use bloomery_crds::outcome::{OutcomeCode, Phase};
use clap::Args;
use jiff::SignedDuration;
use std::str::FromStr;
use std::time::Duration;
use strum::IntoEnumIterator;

/// What `reply` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Without --question, the one open question of the Job is answered; at a terminal, where there are several, you are asked which.\n\
                  Where none is open, the text is a message to the conversation. Of choices, a number or the words of one will do; other words\n\
                  are sent as they are.\n\n\
                  Exit codes: 0 said, 1 refused, 2 no such Job or question, or not clear which, 6 too late: the Job has ended, or somebody\n\
                  has answered.\n\n\
                  Example: kubectl bloomery reply refund A-17"
)]
pub struct ReplyArgs {
    /// The Job
    #[arg(value_parser = name)]
    pub job: String,
    /// What is said, at most 1024 bytes; - is stdin. At a terminal you are asked for it
    #[arg(allow_negative_numbers = true)]
    pub text: Option<String>,
    /// Which question is answered
    #[arg(short, long, value_name = "ID", conflicts_with = "message", value_parser = question)]
    pub question: Option<String>,
    /// Say it to the conversation, though a question may be open
    #[arg(short, long)]
    pub message: bool,
    /// Print the Job for programs
    #[arg(short, long, value_enum)]
    pub output: Option<ObjectOutput>,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// What `cancel` takes.
#[derive(Debug, Args)]
#[command(after_help = "At a terminal you are asked; elsewhere --yes is needed. It cannot be taken back.\n\n\
                  Exit codes: 0 cancelled, or to be cancelled, 1 refused, or you said no, 2 no such Job, 6 too late: it has ended otherwise, or\n\
                  --timeout has passed.")]
pub struct CancelArgs {
    /// The Jobs
    #[arg(value_name = "JOB", required = true, value_parser = name)]
    pub jobs: Vec<String>,
    /// Cancel without being asked
    #[arg(short, long)]
    pub yes: bool,
    /// Wait until they have ended
    #[arg(short, long)]
    pub wait: bool,
    /// For how long that is waited for, such as 30s or 5m
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "wait")]
    pub timeout: Option<Duration>,
    /// Print the Jobs for programs
    #[arg(short, long, value_enum)]
    pub output: Option<ObjectOutput>,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// What `wait` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Without --for it waits until the Job has ended, or waits for people; with --for ended, until it has ended.\n\n\
                  Exit codes: those of the Job: 0 succeeded, 3 failed, 4 refused, 5 escalated, 7 it waits for people, 9 cancelled. With another\n\
                  --for: 0 it is so, 1 it cannot be any more. 2 no such Job, 6 --timeout has passed."
)]
pub struct WaitArgs {
    /// The Job
    #[arg(value_parser = name)]
    pub job: String,
    /// What is waited for: ended, waiting (for people), a phase, or the code of an outcome
    #[arg(long = "for", value_name = "WHAT")]
    pub goal: Option<Goal>,
    /// For how long, such as 30s or 5m; without it, for good
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Print the Job for programs
    #[arg(short, long, value_enum)]
    pub output: Option<ObjectOutput>,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// What `tree` takes.
#[derive(Debug, Args)]
#[command(
    after_help = "Without a name, the whole namespace. Exit codes: 0 good, 1 the cluster does not tell, 2 there is no such Skill or Job."
)]
pub struct TreeArgs {
    /// A Skill, or a Job
    #[arg(value_name = "SKILL|JOB", value_parser = name)]
    pub name: Option<String>,
    /// Print what is in it for programs
    #[arg(short, long, value_enum)]
    pub output: Option<ObjectOutput>,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// What is waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// The end.
    Ended,
    /// That it waits for people.
    Waiting,
    /// A phase.
    Phase(Phase),
    /// An outcome.
    Code(OutcomeCode),
}

impl Goal {
    /// The names of all goals.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let names = Phase::iter().map(<&str>::from).chain(OutcomeCode::iter().map(<&str>::from));
        ["ended", "waiting"].into_iter().chain(names)
    }
}

impl FromStr for Goal {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let is = |name: &str| name.eq_ignore_ascii_case(text);
        if is("ended") {
            return Ok(Self::Ended);
        }
        if is("waiting") {
            return Ok(Self::Waiting);
        }
        if let Some(phase) = Phase::iter().find(|phase| is(phase.into())) {
            return Ok(Self::Phase(phase));
        }
        if let Some(code) = OutcomeCode::iter().find(|code| is(code.into())) {
            return Ok(Self::Code(code));
        }
        let near = nearest::did_you_mean(text, Self::names());
        Err(Error(format!("must be ended, waiting, a phase or an outcome code.{near}")))
    }
}

fn duration(text: &str) -> Result<Duration, Error> {
    let read = text.parse::<SignedDuration>().ok().and_then(|read| Duration::try_from(read).ok());
    read.filter(|read| !read.is_zero()).ok_or_else(|| Error("must be a duration such as 30s, 5m or 1h30m".to_owned()))
}

/// An id, as questions have them.
fn question(text: &str) -> Result<String, Error> {
    let sign = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let good = (1..=16).contains(&text.len()) && text.chars().all(sign);
    if good { Ok(text.to_owned()) } else { Err(Error("must be the id of a question, such as q-1".to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::ended("ended", Some(Goal::Ended))]
    #[case::waiting("Waiting", Some(Goal::Waiting))]
    #[case::phase("awaitingreply", Some(Goal::Phase(Phase::AwaitingReply)))]
    #[case::of_both("Succeeded", Some(Goal::Phase(Phase::Succeeded)))]
    #[case::code("StepLimit", Some(Goal::Code(OutcomeCode::StepLimit)))]
    #[case::neither("condition=Ready", None)]
    #[case::nothing("", None)]
    fn what_is_waited_for_is_a_word_of_the_api(#[case] text: &str, #[case] expected: Option<Goal>) {
        assert_eq!(text.parse::<Goal>().ok(), expected);
    }

    #[test]
    fn a_slip_of_the_pen_is_told() {
        assert!("StepLimits".parse::<Goal>().unwrap_err().0.contains("Did you mean \"StepLimit\"?"));
    }

    #[rstest]
    #[case::seconds("30s", Some(30))]
    #[case::minutes("5m", Some(300))]
    #[case::both("1h30m", Some(5400))]
    #[case::bare("30", None)]
    #[case::nothing_at_all("0s", None)]
    #[case::below("-5s", None)]
    #[case::words("soon", None)]
    fn a_time_has_a_unit(#[case] text: &str, #[case] seconds: Option<u64>) {
        assert_eq!(duration(text).ok(), seconds.map(Duration::from_secs));
    }
}
