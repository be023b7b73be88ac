//! Why a reconcile could not go on.

use backon::{BackoffBuilder, ExponentialBuilder};
use std::time::Duration;

/// After how many failures in a row the delay has reached its maximum, whatever the error.
const MAX_COUNTED_FAILURES: u32 = 16;

/// Why a reconcile could not go on; it is tried again, later and later.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused a request, or could not be reached.
    #[error("cannot {what}: {}", brief(source))]
    Api {
        /// What was asked, as `apply Deployment acme/orders-mcp`.
        what: String,
        /// What it answered.
        source: kube::Error,
    },
    /// Something of ours cannot be written as JSON.
    #[error("cannot write {what} as JSON: {source}")]
    Json {
        /// What.
        what: String,
        /// Why.
        source: serde_json::Error,
    },
    /// The API server will not have an object, for a reason that lies in it or in the namespace.
    #[error("{what} was refused by the API server: {why}")]
    Refused {
        /// Which object.
        what: String,
        /// Its reason.
        why: String,
    },
    /// An object lacks what the API server gives every object.
    #[error("{what} has no {field}: the API server did not give it one")]
    Incomplete {
        /// Which object.
        what: String,
        /// The field.
        field: &'static str,
    },
}

/// What the API server said; the error's own words repeat all of its answer.
fn brief(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

impl Error {
    /// Names what was asked, for `map_err`.
    pub fn api(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| Self::Api { what, source }
    }

    /// The HTTP status of the API server's refusal.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Api { source: kube::Error::Api(status), .. } => Some(status.code),
            Self::Api { .. } | Self::Json { .. } | Self::Refused { .. } | Self::Incomplete { .. } => None,
        }
    }

    /// Whether somebody else wrote in between: look again, at once.
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409)
    }

    /// Whether the object, or its namespace, is gone or on its way: nothing is left to do.
    pub fn is_gone(&self) -> bool {
        let Self::Api { source: kube::Error::Api(status), .. } = self else { return false };
        let causes = status.details.iter().flat_map(|details| &details.causes);
        status.code == 404 || causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
    }

    /// The word for metrics.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Api { .. } if self.is_conflict() => "conflict",
            Self::Api { .. } if self.is_gone() => "gone",
            Self::Api { .. } => "api",
            Self::Refused { .. } => "refused",
            Self::Json { .. } | Self::Incomplete { .. } => "internal",
        }
    }

    /// Returns the delay before the next try, after so many failures of the same object in a row. It is drawn from the upper half
    /// of what the backoff allows, so that objects that failed together are not tried again together.
    pub fn retry_delay(&self, failures: u32) -> Duration {
        let failures = failures.clamp(1, MAX_COUNTED_FAILURES);
        let mut delays = self.backoff(failures).with_jitter().build();
        delays.nth(usize::try_from(failures - 1).unwrap_or_default()).unwrap_or_default()
    }

    /// The lower bounds of the delays: jitter adds at most as much again.
    fn backoff(&self, failures: u32) -> ExponentialBuilder {
        let (first, longest) = match self {
            // A refusal stands until somebody changes a quota or a policy.
            Self::Refused { .. } => (Duration::from_millis(2500), Duration::from_mins(5)),
            // The cache needs a moment to catch up with the other writer.
            _ if self.is_conflict() && failures <= 3 => (Duration::from_millis(25), Duration::from_mins(1)),
            _ => (Duration::from_millis(250), Duration::from_mins(1)),
        };
        ExponentialBuilder::new().with_min_delay(first).with_max_delay(longest).without_max_times()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;

    fn refused(code: u16) -> Error {
        Error::api("apply Service acme/orders-mcp")(kube::Error::Api(Box::new(
            Status::failure("no", "No").with_code(code),
        )))
    }

    #[test]
    fn pauses_grow_and_are_bounded() {
        let bounds: Vec<Duration> = refused(500).backoff(1).build().take(30).collect();
        assert!(bounds.is_sorted() && bounds[0] < bounds[1]);
        let pauses: Vec<Duration> = (1..30).map(|failures| refused(500).retry_delay(failures)).collect();
        assert!(pauses.iter().zip(&bounds).all(|(pause, bound)| bound <= pause && *pause <= 2 * *bound), "{pauses:?}");
        assert!(pauses.iter().all(|pause| *pause <= Duration::from_mins(2)));
        assert!(refused(409).retry_delay(1) < Duration::from_millis(100));
    }

    #[test]
    fn says_what_was_asked_of_which_object() {
        assert!(refused(403).to_string().starts_with("cannot apply Service acme/orders-mcp: "));
        assert!(refused(404).is_gone() && refused(409).is_conflict());
    }
}
