//! The errors of a single request to a Model. Each kind leads to a different next step.

use crate::optional_fields::OptionalField;
use bloomery_http::credential::{self, SecretMissing};
use bloomery_http::{body, root_cause};
use std::time::Duration;

/// The error of a request that got no answer. Each message continues the clause "the Model `x` …".
#[derive(Debug)]
pub(crate) enum Error {
    /// The key does not exist yet.
    SecretMissing(SecretMissing),
    /// The cause may disappear, by itself or because a person removes it.
    Temporary {
        /// The delay before the next try.
        delay: RetryDelay,
        /// The failure, and its remedy.
        message: String,
    },
    /// The server does not support a part of the request that can be left out.
    UnsupportedField(OptionalField),
    /// The same request would fail again.
    Refused {
        /// The failure, and its remedy.
        message: String,
    },
    /// The conversation exceeds the model's context window.
    TooLong {
        /// The failure, in the words of the server.
        message: String,
    },
    /// The answer cannot be read.
    Unreadable {
        /// The failure.
        message: String,
    },
}

/// The kind of delay before the next try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryDelay {
    /// A short delay, because the cause disappears by itself.
    Short,
    /// A long delay, because a person has to remove the cause.
    Long,
    /// A long delay, because a person has to correct the key.
    WrongKey,
    /// A short delay, because a missing Secret is detected without a request.
    SecretMissing,
    /// The delay that the server requested.
    RetryAfter(Duration),
}

impl From<credential::Error> for Error {
    fn from(error: credential::Error) -> Self {
        match error {
            credential::Error::Missing(missing) => Self::SecretMissing(missing),
            credential::Error::Unusable { message } => Self::Temporary { delay: RetryDelay::Long, message },
        }
    }
}

impl Error {
    /// Returns the error of an answer of which no part arrived for `time`.
    pub(crate) fn stalled(time: Duration) -> Self {
        let message = format!("did not answer within {} s", time.as_secs_f64().ceil());
        Self::Temporary { delay: RetryDelay::Short, message }
    }

    /// Returns the error of a streamed answer that ended early.
    pub(crate) fn interrupted(reason: &str) -> Self {
        let message = format!("did not finish: the answer was cut off: {reason}");
        Self::Temporary { delay: RetryDelay::Short, message }
    }

    /// Returns the error of an answer that has more than `max` bytes.
    pub(crate) fn too_large(max: usize) -> Self {
        let message = format!("gave an answer that is larger than {max} bytes");
        Self::Unreadable { message }
    }

    /// Returns the error of a request that could not be sent, or got no response within `timeout`.
    pub(crate) fn from_transport(error: &reqwest::Error, timeout: Duration) -> Self {
        if error.is_timeout() && !error.is_connect() {
            return Self::stalled(timeout);
        }
        let cause = root_cause(error);
        let message = if error.is_connect() {
            format!("cannot be reached: {cause}. Check its address, and that the network allows connections to it")
        } else {
            format!("gave no answer: {cause}")
        };
        Self::Temporary { delay: RetryDelay::Short, message }
    }

    /// Returns the error of a response whose body could not be read to its end.
    pub(crate) fn from_body(error: &body::Error) -> Self {
        match error {
            body::Error::Interrupted { .. } => {
                Self::Temporary { delay: RetryDelay::Short, message: format!("did not finish: {error}") }
            }
            body::Error::Stalled { silence } => Self::stalled(*silence),
            body::Error::TooLarge { max } => Self::too_large(*max),
        }
    }
}
