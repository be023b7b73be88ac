//! Why a reconcile could not go on.

use std::time::Duration;

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

    /// How long to wait before the next try, after so many failures of the same object in a row.
    ///
    /// `jitter` is in `0.0..1.0`: objects that failed together do not come back together.
    pub fn pause(&self, failures: u32, jitter: f64) -> Duration {
        let (first, longest) = match self {
            // What is refused stays so until somebody changes a quota or a policy.
            Self::Refused { .. } => (5.0, 600.0),
            // The cache needs a moment to see what the other one wrote.
            _ if self.is_conflict() && failures <= 3 => (0.05, 120.0),
            _ => (0.5, 120.0),
        };
        let pause = f64::min(first * 2_f64.powi(i32::try_from(failures.min(16)).unwrap_or(16) - 1), longest);
        Duration::from_secs_f64(pause * (0.5 + jitter.clamp(0.0, 1.0) / 2.0))
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
        let pauses: Vec<Duration> = (1..30).map(|failures| refused(500).pause(failures, 0.5)).collect();
        assert!(pauses.is_sorted());
        assert!(pauses.iter().all(|pause| *pause <= Duration::from_mins(2)));
        assert!(refused(409).pause(1, 1.0) < Duration::from_millis(100));
    }

    #[test]
    fn says_what_was_asked_of_which_object() {
        assert!(refused(403).to_string().starts_with("cannot apply Service acme/orders-mcp: "));
        assert!(refused(404).is_gone() && refused(409).is_conflict());
    }
}
