//! A fault as people write it.

use serde::Deserialize;

use super::{Cut, Fault, FaultKind, RetryAfter, Times};

/// The status of an error inside, where the script does not say one.
const INSIDE: u16 = 500;

/// The kinds of a fault, flat: exactly one of them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "the form that people write; `FaultKind` is the enum")]
pub(super) struct Written {
    status: Option<u16>,
    retry_after: Option<u64>,
    /// Seconds from now, said as a date.
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

impl TryFrom<Written> for Fault {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let times = written.times;
        let kind = written.kind()?;
        if matches!(kind, FaultKind::Hold(_)) && times.is_some() {
            return Err("fault: a `hold` is a gate and takes no `times`".to_owned());
        }
        Ok(Self { kind, times: times.unwrap_or(Times::Count(1)) })
    }
}

impl Written {
    fn kind(self) -> Result<FaultKind, String> {
        let Self { status, retry_after, retry_after_date, too_long, garbage, say, huge, .. } = self;
        let Self { empty, error_inside, slow, cut, stall, hang, hold, .. } = self;
        let inside = match error_inside {
            Some(Inside::Status(status)) => Some(status),
            Some(Inside::Plain(true)) => Some(INSIDE),
            Some(Inside::Plain(false)) | None => None,
        };
        if [status, inside].into_iter().flatten().any(|status| !(400..=599).contains(&status)) {
            return Err("fault: a status must be 400 to 599".to_owned());
        }
        let retry_after = match (retry_after, retry_after_date) {
            (Some(_), Some(_)) => return Err("fault: `retryAfter` and `retryAfterDate` exclude each other".to_owned()),
            (seconds, date) => seconds.map(RetryAfter::Seconds).or(date.map(RetryAfter::Date)),
        };
        if retry_after.is_some() && status.is_none() {
            return Err("fault: `retryAfter` goes with a `status`".to_owned());
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
            _ => Err("fault: exactly one of `status`, `tooLong`, `garbage`, `say`, `huge`, `empty`, `errorInside`, \
                      `slow`, `cut`, `stall`, `hang`, `hold`"
                .to_owned()),
        }
    }
}
