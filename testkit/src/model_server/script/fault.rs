//! Faults: failures before or during the answer of a turn.

use serde::{Deserialize, Deserializer, de};

/// The default HTTP status of `errorInside`.
const DEFAULT_INSIDE_STATUS: u16 = 500;

/// A fault, and the number of times that it is served in a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawFault")]
pub struct Fault {
    /// The kind.
    pub kind: FaultKind,
    /// The number of times.
    pub times: Times,
}

/// The kind of a fault. A fault that sends a part of an answer uses the answer of the turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An error status, with a `Retry-After` header if there is a time.
    Status {
        /// The status, 400 to 599.
        status: u16,
        /// The time of the header.
        retry_after: Option<RetryAfter>,
    },
    /// 400, because the prompt is longer than the context window.
    TooLong,
    /// 200 with a body that is not JSON.
    Garbage,
    /// 200 with this text instead of the answer, such as one that the engine cannot use.
    Say(String),
    /// 200 with a text of this many bytes, generated as it is sent and rounded up to multiples of 64 KiB.
    Huge(usize),
    /// 200 without choices, or without content.
    Empty,
    /// 200 with the error of this status inside. In a stream, the error comes after half of the answer.
    ErrorInside(u16),
    /// The answer with a delay of this many milliseconds before each event.
    Slow(u64),
    /// The answer without its end.
    Cut(Cut),
    /// Half of the answer, and then nothing until the client disconnects.
    Stall,
    /// No answer until the client disconnects.
    Hang,
    /// Every request for the turn waits until the hold of this name is released, including the requests of later attempts. A
    /// hold has no number of times.
    Hold(String),
}

/// The time after which a client may retry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// In this many seconds, sent as a number.
    Seconds(u64),
    /// In this many seconds, sent as a date.
    Date(u64),
}

/// The point at which an answer ends too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Cut {
    /// Halfway, with the connection closed.
    Reset,
    /// Halfway, as if the response were complete.
    Short,
    /// With everything except the event that marks the end of a stream. Without streaming, the answer ends as with `short`.
    Unmarked,
}

/// The number of times that a fault is served in one conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// This many times.
    Count(u32),
    /// Each time.
    Always,
}

impl Fault {
    /// Returns whether this fault replaces the answer to every request, so that the turn needs no answer.
    pub(super) fn is_endless(&self) -> bool {
        let needs_answer = matches!(self.kind, FaultKind::Hold(_) | FaultKind::Slow(_));
        self.times == Times::Always && !needs_answer
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Count {
            Number(u32),
            Word(String),
        }
        match Count::deserialize(deserializer)? {
            Count::Number(count) if count > 0 => Ok(Self::Count(count)),
            Count::Word(word) if word == "always" => Ok(Self::Always),
            Count::Number(_) | Count::Word(_) => Err(de::Error::custom("`times` is a number from 1, or `always`")),
        }
    }
}

/// Error of a fault in a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
enum Error {
    #[error("fault: a `hold` lasts until it is released, so it takes no `times`")]
    TimesOfHold,
    #[error("fault: a status must be 400 to 599")]
    Status,
    #[error("fault: `retryAfter` and `retryAfterDate` exclude each other")]
    TwoRetryTimes,
    #[error("fault: `retryAfter` requires a `status`")]
    RetryAfterWithoutStatus,
    #[error(
        "fault: exactly one of `status`, `tooLong`, `garbage`, `say`, `huge`, `empty`, `errorInside`, `slow`, `cut`, \
         `stall`, `hang`, `hold`"
    )]
    Kind,
}

/// A fault in the form of a script: each kind is a field, and exactly one of these fields is set.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "the form that people write in a script; `FaultKind` is the enum")]
struct RawFault {
    status: Option<u16>,
    retry_after: Option<u64>,
    /// Seconds from now, sent as a date.
    retry_after_date: Option<u64>,
    #[serde(default)]
    too_long: bool,
    #[serde(default)]
    garbage: bool,
    say: Option<String>,
    huge: Option<usize>,
    #[serde(default)]
    empty: bool,
    error_inside: Option<Inside>,
    slow: Option<u64>,
    cut: Option<Cut>,
    #[serde(default)]
    stall: bool,
    #[serde(default)]
    hang: bool,
    hold: Option<String>,
    times: Option<Times>,
}

/// `true`, or a status.
#[derive(Deserialize)]
#[serde(untagged)]
enum Inside {
    Plain(bool),
    Status(u16),
}

impl TryFrom<RawFault> for Fault {
    type Error = Error;

    fn try_from(raw: RawFault) -> Result<Self, Error> {
        let times = raw.times;
        let kind = raw.kind()?;
        if matches!(kind, FaultKind::Hold(_)) && times.is_some() {
            return Err(Error::TimesOfHold);
        }
        Ok(Self { kind, times: times.unwrap_or(Times::Count(1)) })
    }
}

impl RawFault {
    fn kind(self) -> Result<FaultKind, Error> {
        let Self { status, retry_after, retry_after_date, too_long, garbage, say, huge, .. } = self;
        let Self { empty, error_inside, slow, cut, stall, hang, hold, .. } = self;
        let inside = match error_inside {
            Some(Inside::Status(status)) => Some(status),
            Some(Inside::Plain(true)) => Some(DEFAULT_INSIDE_STATUS),
            Some(Inside::Plain(false)) | None => None,
        };
        if [status, inside].into_iter().flatten().any(|status| !(400..=599).contains(&status)) {
            return Err(Error::Status);
        }
        let retry_after = match (retry_after, retry_after_date) {
            (Some(_), Some(_)) => return Err(Error::TwoRetryTimes),
            (seconds, date) => seconds.map(RetryAfter::Seconds).or(date.map(RetryAfter::Date)),
        };
        if retry_after.is_some() && status.is_none() {
            return Err(Error::RetryAfterWithoutStatus);
        }
        let mut kinds = [
            status.map(|status| FaultKind::Status { status, retry_after }),
            too_long.then_some(FaultKind::TooLong),
            garbage.then_some(FaultKind::Garbage),
            say.map(FaultKind::Say),
            huge.map(FaultKind::Huge),
            empty.then_some(FaultKind::Empty),
            inside.map(FaultKind::ErrorInside),
            slow.map(FaultKind::Slow),
            cut.map(FaultKind::Cut),
            stall.then_some(FaultKind::Stall),
            hang.then_some(FaultKind::Hang),
            hold.map(FaultKind::Hold),
        ]
        .into_iter()
        .flatten();
        match (kinds.next(), kinds.next()) {
            (Some(kind), None) => Ok(kind),
            _ => Err(Error::Kind),
        }
    }
}
