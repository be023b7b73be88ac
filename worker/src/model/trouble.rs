//! What can go wrong with one try, sorted by what to do next.

use super::extra::Extra;
use super::key::{self, SecretMissing};
use crate::http;
use std::time::Duration;

/// Why a try brought no answer. Messages go on from "the Model `x` ...".
#[derive(Debug)]
pub(super) enum Trouble {
    /// The key is not there yet.
    Missing(SecretMissing),
    /// It may pass, by itself or because somebody mends it.
    Passing {
        /// How soon to try again.
        pace: Pace,
        /// What happened, and what to do.
        message: String,
    },
    /// The server does not take a part of the request that can be left out.
    Unwanted(Extra),
    /// Asking the same again brings the same.
    Refused {
        /// What happened, and what to do.
        message: String,
    },
    /// The conversation is longer than the model takes.
    TooLong {
        /// What happened.
        message: String,
    },
    /// There is an answer that cannot be read.
    Unreadable {
        /// What is wrong with it.
        message: String,
    },
}

/// How soon to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Pace {
    /// It passes by itself.
    Brisk,
    /// A person has to mend it.
    Slow,
    /// A key has to appear.
    Missing,
    /// The server has asked for a pause.
    Asked(Duration),
}

impl From<key::Error> for Trouble {
    fn from(error: key::Error) -> Self {
        match error {
            key::Error::Missing(missing) => Self::Missing(missing),
            key::Error::Unusable { message } => Self::Passing { pace: Pace::Slow, message },
        }
    }
}

/// Nothing came for so long.
pub(super) fn silent(time: Duration) -> Trouble {
    let message = format!("did not answer within {} s", time.as_secs_f64().ceil());
    Trouble::Passing { pace: Pace::Brisk, message }
}

/// A streamed answer ended before its end.
pub(super) fn broken_off(why: &str) -> Trouble {
    Trouble::Passing { pace: Pace::Brisk, message: format!("did not finish: the answer was cut off: {why}") }
}

/// An answer is larger than what is read of one.
pub(super) fn too_large(max: usize) -> Trouble {
    Trouble::Unreadable { message: format!("gave an answer that is not read: the answer is larger than {max} bytes") }
}

/// No answer came.
pub(super) fn transport(error: &reqwest::Error, timeout: Duration) -> Trouble {
    if error.is_timeout() && !error.is_connect() {
        return silent(timeout);
    }
    let message = if error.is_connect() {
        format!(
            "cannot be reached: {}. Check its address (baseUrl), and whether the network lets requests to it through",
            http::cause(error)
        )
    } else {
        format!("gave no answer: {}", http::cause(error))
    };
    Trouble::Passing { pace: Pace::Brisk, message }
}

/// An answer began, and could not be read to its end.
pub(super) fn body(error: &http::BodyError) -> Trouble {
    match error {
        http::BodyError::Cut { .. } => {
            Trouble::Passing { pace: Pace::Brisk, message: format!("did not finish: {error}") }
        }
        http::BodyError::Silent { silence: time } => silent(*time),
        http::BodyError::TooLarge { max } => too_large(*max),
    }
}
