//! Why one attempt to get an answer failed, sorted by what to do next.

use crate::optional_fields::OptionalField;
use bloomery_http::credential::{self, SecretMissing};
use bloomery_http::{body, root_cause};
use std::time::Duration;

/// The reason that an attempt got no answer. Each message continues "the Model `x` ...".
#[derive(Debug)]
pub(crate) enum Error {
    /// The key does not exist yet.
    SecretMissing(SecretMissing),
    /// The cause may disappear, by itself or because a person removes it.
    Temporary {
        /// When to try again.
        delay: RetryDelay,
        /// What happened, and what to do.
        message: String,
    },
    /// The server does not support a part of the request that can be left out.
    UnsupportedField(OptionalField),
    /// The same request would fail again.
    Refused {
        /// What happened, and what to do.
        message: String,
    },
    /// The conversation exceeds the model's context window.
    TooLong {
        /// What the server said.
        message: String,
    },
    /// The answer cannot be read.
    Unreadable {
        /// What is wrong with it.
        message: String,
    },
}

/// How soon to try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RetryDelay {
    /// Soon: the cause disappears by itself.
    Short,
    /// Later: a person has to remove the cause.
    Long,
    /// As soon as a key may have appeared.
    SecretMissing,
    /// After the delay that the server asked for.
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
    /// No part of the answer arrived for `time`.
    pub(crate) fn silent(time: Duration) -> Self {
        let message = format!("did not answer within {} s", time.as_secs_f64().ceil());
        Self::Temporary { delay: RetryDelay::Short, message }
    }

    /// A streamed answer ended early.
    pub(crate) fn interrupted(reason: &str) -> Self {
        let message = format!("did not finish: the answer was cut off: {reason}");
        Self::Temporary { delay: RetryDelay::Short, message }
    }

    /// The answer has more than `max` bytes.
    pub(crate) fn too_large(max: usize) -> Self {
        let message = format!("gave an answer that is not read: the answer is larger than {max} bytes");
        Self::Unreadable { message }
    }

    /// The request could not be sent, or got no response within `timeout`.
    pub(crate) fn from_transport(error: &reqwest::Error, timeout: Duration) -> Self {
        if error.is_timeout() && !error.is_connect() {
            return Self::silent(timeout);
        }
        let cause = root_cause(error);
        let message = if error.is_connect() {
            format!(
                "cannot be reached: {cause}. Check its address (baseUrl), and whether the network lets requests to it through"
            )
        } else {
            format!("gave no answer: {cause}")
        };
        Self::Temporary { delay: RetryDelay::Short, message }
    }

    /// The body of a response could not be read to its end.
    pub(crate) fn from_body(error: &body::Error) -> Self {
        match error {
            body::Error::Interrupted { .. } => {
                Self::Temporary { delay: RetryDelay::Short, message: format!("did not finish: {error}") }
            }
            body::Error::Stalled { silence } => Self::silent(*silence),
            body::Error::TooLarge { max } => Self::too_large(*max),
        }
    }
}
