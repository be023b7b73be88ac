//! What goes wrong before a turn is answered.

use serde::{Deserialize, Deserializer, de};

/// One fault, and how often it is served in a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub struct Fault {
    /// What goes wrong.
    pub kind: FaultKind,
    /// How often.
    pub times: Times,
}

/// What can go wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An error status, with `Retry-After` in seconds if it says so.
    Status {
        /// The status, 400 to 599.
        status: u16,
        /// The value of `Retry-After`.
        retry_after: Option<u64>,
    },
    /// 200 with a body that is no JSON.
    Garbage,
    /// 200 with this text instead of the answer: one that the engine cannot use.
    Say(String),
    /// 200 without choices.
    Empty,
    /// 200 with an error object.
    ErrorInside,
    /// No answer until the client goes away.
    Hang,
    /// The turn waits until the hold of this name is released, and goes on then. It is a gate,
    /// not counted: whoever asks before the release waits, a restarted worker too.
    Hold(String),
}

/// How often a fault is served in one conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Times {
    /// This many times.
    Count(u32),
    /// Each time.
    Always,
}

impl Fault {
    pub(super) fn is_endless(&self) -> bool {
        self.times == Times::Always && !matches!(self.kind, FaultKind::Hold(_))
    }
}

/// A fault as a script has it: one of the kinds, flat.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "the form that people write; `FaultKind` is the enum")]
struct Written {
    status: Option<u16>,
    retry_after: Option<u64>,
    say: Option<String>,
    #[serde(default)]
    garbage: bool,
    #[serde(default)]
    empty: bool,
    #[serde(default)]
    error_inside: bool,
    #[serde(default)]
    hang: bool,
    hold: Option<String>,
    times: Option<Times>,
}

impl TryFrom<Written> for Fault {
    type Error = String;

    fn try_from(written: Written) -> Result<Self, String> {
        let Written { status, retry_after, say, garbage, empty, error_inside, hang, hold, times } = written;
        if hold.is_some() && times.is_some() {
            return Err("fault: a `hold` is a gate and takes no `times`".to_owned());
        }
        if retry_after.is_some() && status.is_none() {
            return Err("fault: `retryAfter` goes with a `status`".to_owned());
        }
        if status.is_some_and(|status| !(400..=599).contains(&status)) {
            return Err("fault: `status` must be 400 to 599".to_owned());
        }
        let mut kinds = [
            status.map(|status| FaultKind::Status { status, retry_after }),
            say.map(FaultKind::Say),
            garbage.then_some(FaultKind::Garbage),
            empty.then_some(FaultKind::Empty),
            error_inside.then_some(FaultKind::ErrorInside),
            hang.then_some(FaultKind::Hang),
            hold.map(FaultKind::Hold),
        ]
        .into_iter()
        .flatten();
        match (kinds.next(), kinds.next()) {
            (Some(kind), None) => Ok(Self { kind, times: times.unwrap_or(Times::Count(1)) }),
            _ => {
                Err("fault: exactly one of `status`, `say`, `garbage`, `empty`, `errorInside`, `hang`, `hold`"
                    .to_owned())
            }
        }
    }
}

impl<'de> Deserialize<'de> for Times {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            Count(u32),
            Word(String),
        }
        match Written::deserialize(deserializer)? {
            Written::Count(count) if count > 0 => Ok(Self::Count(count)),
            Written::Word(word) if word == "always" => Ok(Self::Always),
            Written::Count(_) | Written::Word(_) => Err(de::Error::custom("`times` is a number from 1, or `always`")),
        }
    }
}
