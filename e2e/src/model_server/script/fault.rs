//! What goes wrong before a turn is answered, or while it is.

mod written;

use serde::{Deserialize, Deserializer, de};

use self::written::Written;

/// One fault, and how often it is served in a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(try_from = "Written")]
pub struct Fault {
    /// What goes wrong.
    pub kind: FaultKind,
    /// How often.
    pub times: Times,
}

/// What can go wrong. What is served halfway is the answer of the turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An error status, with `Retry-After` if it says so.
    Status {
        /// The status, 400 to 599.
        status: u16,
        /// When to come again.
        retry_after: Option<RetryAfter>,
    },
    /// 400, because the prompt is longer than the model's window.
    TooLong,
    /// 200 with a body that is no JSON.
    Garbage,
    /// 200 with this text instead of the answer: one that the engine cannot use.
    Say(String),
    /// 200 with a text of so many bytes. They are made as they are sent, and rounded up to pieces of 64 KiB.
    Huge(usize),
    /// 200 without choices, or without content.
    Empty,
    /// 200 with the error of this status inside; where the answer is streamed, halfway.
    ErrorInside(u16),
    /// The answer, with so many milliseconds before each of its events.
    Slow(u64),
    /// The answer, but for its end.
    Cut(Cut),
    /// Half of the answer, and then nothing until the client goes away.
    Stall,
    /// No answer until the client goes away.
    Hang,
    /// The turn waits until the hold of this name is released, and goes on then. It is a gate,
    /// not counted: whoever asks before the release waits, a restarted worker too.
    Hold(String),
}

/// When a client is asked to come again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RetryAfter {
    /// In so many seconds, said as a number.
    Seconds(u64),
    /// In so many seconds, said as a date.
    Date(u64),
}

/// How an answer ends too early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Cut {
    /// Halfway, with the connection closed.
    Reset,
    /// Halfway, as if that were all.
    Short,
    /// With everything but the mark of a stream's end; an answer of one piece ends as with `short`.
    Unmarked,
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
    /// Whether a turn needs no answer of its own, since this comes in its place each time.
    pub(super) fn is_endless(&self) -> bool {
        let needs_answer = matches!(self.kind, FaultKind::Hold(_) | FaultKind::Slow(_));
        self.times == Times::Always && !needs_answer
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
