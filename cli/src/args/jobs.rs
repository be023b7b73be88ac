//! Arguments of the commands for Jobs on a cluster.

use super::cluster::{ClusterArgs, ObjectOutput};
use super::values::{Error, name};
use bloomery_crds::nearest;
use bloomery_crds::outcome::{OutcomeCode, Phase};
use clap::Args;
use jiff::SignedDuration;
use std::str::FromStr;
use std::time::Duration;
use strum::IntoEnumIterator;

/// The arguments of `reply`.
#[derive(Debug, Args)]
#[command(
    after_help = "Without --question, answers the open question of the Job. If several are open, a terminal asks you which one. If none\n\
                  is open, the text is sent as a message to the conversation. If the question has choices, give the number or the text\n\
                  of a choice; any other text is sent unchanged.\n\n\
                  Exit codes: 0 sent, 1 refused, 2 no such Job or question, or several, 6 too late: the Job has ended, or the question\n\
                  is answered.\n\n\
                  Example: kubectl bloomery reply refund A-17"
)]
pub struct ReplyArgs {
    /// The Job
    #[arg(value_parser = name)]
    pub job: String,
    /// The text, at most 1024 bytes, or - for stdin [default: you are asked for it at a terminal]
    #[arg(allow_negative_numbers = true)]
    pub text: Option<String>,
    /// The id of the question
    #[arg(short, long, value_name = "ID", conflicts_with = "message", value_parser = question)]
    pub question: Option<String>,
    /// Send a message to the conversation even if a question is open
    #[arg(short, long)]
    pub message: bool,
    /// Print the Job in this format
    #[arg(short, long, value_enum)]
    pub output: Option<ObjectOutput>,
    /// The cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// The arguments of `cancel`.
#[derive(Debug, Args)]
#[command(after_help = "At a terminal you are asked to confirm; otherwise --yes is required. It cannot be undone.\n\n\
                  Exit codes: 0 cancelled, or being cancelled, 1 refused or not confirmed, 2 no such Job, 6 too late: it has ended\n\
                  otherwise, or --timeout has passed.")]
pub struct CancelArgs {
    /// The Jobs
    #[arg(value_name = "JOB", required = true, value_parser = name)]
    pub jobs: Vec<String>,
    /// Cancel without confirmation
    #[arg(short, long)]
    pub yes: bool,
    /// Wait until they have ended
    #[arg(short, long)]
    pub wait: bool,
    /// The maximum time to wait, such as 30s or 5m
    #[arg(long, value_name = "DURATION", value_parser = duration, requires = "wait")]
    pub timeout: Option<Duration>,
    /// Print the Jobs in this format
    #[arg(short, long, value_enum)]
    pub output: Option<ObjectOutput>,
    /// The cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// The arguments of `wait`.
#[derive(Debug, Args)]
#[command(after_help = "Without --for, waits until the Job has ended or waits for people.\n\n\
                  Exit codes without --for, and with --for=ended: 0 succeeded, 3 failed, 4 refused, 5 escalated, 7 waits for people,\n\
                  9 cancelled. With any other --for: 0 reached, 1 cannot be reached any more. Always: 2 no such Job, 6 --timeout\n\
                  has passed.")]
pub struct WaitArgs {
    /// The Job
    #[arg(value_parser = name)]
    pub job: String,
    /// The state to wait for: ended, waiting (for people), a phase or an outcome code
    #[arg(long = "for", value_name = "STATE")]
    pub target: Option<WaitTarget>,
    /// The maximum time to wait, such as 30s or 5m [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// Print the Job in this format
    #[arg(short, long, value_enum)]
    pub output: Option<ObjectOutput>,
    /// The cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// The arguments of `tree`.
#[derive(Debug, Args)]
#[command(
    after_help = "Without a name, shows the whole namespace. Exit codes: 0 success, 1 the cluster refuses or cannot be reached, 2 no such\n\
                  Skill or Job."
)]
pub struct TreeArgs {
    /// A Skill, or a Job
    #[arg(value_name = "SKILL|JOB", value_parser = name)]
    pub name: Option<String>,
    /// Print the objects in this format
    #[arg(short, long, value_enum)]
    pub output: Option<ObjectOutput>,
    /// The cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// The state that `wait` waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitTarget {
    /// The Job has ended.
    Ended,
    /// The Job waits for people.
    Waiting,
    /// The Job is in a phase.
    Phase(Phase),
    /// The Job has ended with an outcome.
    Code(OutcomeCode),
}

impl WaitTarget {
    /// Returns the names of all states.
    pub fn names() -> impl Iterator<Item = &'static str> {
        let names = Phase::iter().map(<&str>::from).chain(OutcomeCode::iter().map(<&str>::from));
        ["ended", "waiting"].into_iter().chain(names)
    }
}

impl FromStr for WaitTarget {
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

/// Parses a duration of more than 0.
fn duration(text: &str) -> Result<Duration, Error> {
    let parsed = text.parse::<SignedDuration>().ok().and_then(|parsed| Duration::try_from(parsed).ok());
    parsed
        .filter(|duration| !duration.is_zero())
        .ok_or_else(|| Error("must be a duration such as 30s, 5m or 1h30m".to_owned()))
}

/// Parses the id of a question.
fn question(text: &str) -> Result<String, Error> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let is_valid = (1..=16).contains(&text.len()) && text.chars().all(is_allowed);
    if is_valid { Ok(text.to_owned()) } else { Err(Error("must be the id of a question, such as q-1".to_owned())) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::ended("ended", Some(WaitTarget::Ended))]
    #[case::waiting("Waiting", Some(WaitTarget::Waiting))]
    #[case::phase("awaitingreply", Some(WaitTarget::Phase(Phase::AwaitingReply)))]
    #[case::phase_before_code("Succeeded", Some(WaitTarget::Phase(Phase::Succeeded)))]
    #[case::code("StepLimit", Some(WaitTarget::Code(OutcomeCode::StepLimit)))]
    #[case::neither("condition=Ready", None)]
    #[case::nothing("", None)]
    fn a_state_is_parsed_without_regard_to_case(#[case] text: &str, #[case] expected: Option<WaitTarget>) {
        assert_eq!(text.parse::<WaitTarget>().ok(), expected);
    }

    #[test]
    fn a_misspelled_state_gets_a_suggestion() {
        assert!("StepLimits".parse::<WaitTarget>().unwrap_err().0.contains("Did you mean \"StepLimit\"?"));
    }

    #[rstest]
    #[case::seconds("30s", Some(30))]
    #[case::minutes("5m", Some(300))]
    #[case::both("1h30m", Some(5400))]
    #[case::without_unit("30", None)]
    #[case::zero("0s", None)]
    #[case::negative("-5s", None)]
    #[case::no_number("soon", None)]
    fn a_duration_has_a_unit(#[case] text: &str, #[case] seconds: Option<u64>) {
        assert_eq!(duration(text).ok(), seconds.map(Duration::from_secs));
    }
}
