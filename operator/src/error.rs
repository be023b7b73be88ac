//! Errors of a reconcile.

use backon::{BackoffBuilder, ExponentialBuilder};
use std::time::Duration;

/// The number of quick retries after a conflict.
const MAX_QUICK_RETRIES: u32 = 3;

/// The number of consecutive failures after which every delay is at its maximum.
const MAX_COUNTED_FAILURES: u32 = 16;

/// Texts in the message of the API server if an admission webhook or policy denies a request, or if a webhook cannot be called.
const ADMISSION_TEXTS: [&str; 3] = ["admission webhook \"", "failed calling webhook \"", "ValidatingAdmissionPolicy '"];

/// An error of a reconcile. The reconcile is retried with backoff, unless the object is gone.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The API server refused a request, or could not be reached.
    #[error("cannot {what}: {}", short_message(source))]
    Api {
        /// The request as a verb and an object, such as `apply Deployment acme/orders-mcp`.
        what: String,
        /// The error of the client.
        source: kube::Error,
    },
    /// A value cannot be serialized as JSON.
    #[error("cannot serialize {what} as JSON: {source}")]
    Json {
        /// The value.
        what: String,
        /// The serialization error.
        source: serde_json::Error,
    },
    /// The API server refused an object because of its content or its namespace.
    #[error("{what} was refused by the API server: {why}")]
    Refused {
        /// The object.
        what: String,
        /// The message of the API server.
        why: String,
    },
    /// A stored object has fields or values of a newer version.
    #[error("cannot {what}: a newer version of the operator wrote it: {why}")]
    Unreadable {
        /// The request.
        what: String,
        /// The field or the value.
        why: String,
    },
    /// An object cannot be created yet, because one of its name is deleted.
    #[error("cannot create {what} yet: the earlier one is being deleted, or is deleted soon because its owner is gone")]
    Deleting {
        /// The object.
        what: String,
    },
    /// An object lacks a field that the API server gives every object.
    #[error("{what} has no {field}: the API server did not give it one")]
    Incomplete {
        /// The object.
        what: String,
        /// The field.
        field: &'static str,
    },
    /// The operator built an object without a controlling owner.
    #[error("{what} has no controlling owner, so it is not applied: this is a bug of the operator")]
    Unowned {
        /// The object.
        what: String,
    },
}

/// Returns the message of the API server alone: the text of a client error repeats the whole response.
fn short_message(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}

impl Error {
    /// Adds the request to a client error, for `map_err`.
    pub fn api(what: impl Into<String>) -> impl FnOnce(kube::Error) -> Self {
        let what = what.into();
        move |source| Self::Api { what, source }
    }

    /// The HTTP status of a refusal by the API server; none for any other error.
    pub fn code(&self) -> Option<u16> {
        match self {
            Self::Api { source: kube::Error::Api(status), .. } => Some(status.code),
            Self::Api { .. }
            | Self::Json { .. }
            | Self::Refused { .. }
            | Self::Unreadable { .. }
            | Self::Deleting { .. }
            | Self::Incomplete { .. }
            | Self::Unowned { .. } => None,
        }
    }

    /// Returns whether another writer was faster. The retry reads the object again.
    pub fn is_conflict(&self) -> bool {
        self.code() == Some(409) && !self.is_of_admission()
    }

    /// Returns whether an admission webhook or policy denied the request, or a webhook could not be called. A webhook chooses the code of
    /// its denial.
    fn is_of_admission(&self) -> bool {
        let Self::Api { source: kube::Error::Api(status), .. } = self else { return false };
        ADMISSION_TEXTS.iter().any(|text| status.message.contains(text))
    }

    /// Returns whether the object or its namespace is gone or being deleted: nothing is left to do.
    pub fn is_gone(&self) -> bool {
        let Self::Api { source: kube::Error::Api(status), .. } = self else { return false };
        let causes = status.details.iter().flat_map(|details| &details.causes);
        (status.code == 404 && !self.is_of_admission())
            || causes.into_iter().any(|cause| cause.reason == "NamespaceTerminating")
    }

    /// The message of a refusal that a person may have to end, such as one by a quota or by an admission webhook, also if the webhook cannot
    /// be called; none for a failure that may be temporary.
    pub fn refusal(&self) -> Option<&str> {
        let Self::Api { source: kube::Error::Api(status), .. } = self else { return None };
        let is_refusal = self.has_code_of_refusal() || self.is_of_admission();
        (is_refusal && !self.is_gone()).then_some(status.message.as_str())
    }

    /// The message of a refusal that lasts until a person changes something; none for a failure that may be temporary, such as that of a
    /// webhook that cannot be called.
    pub fn lasting_refusal(&self) -> Option<&str> {
        self.refusal().filter(|_| self.has_code_of_refusal())
    }

    /// Returns whether the code says that the API server refuses the request because of its content or its namespace.
    fn has_code_of_refusal(&self) -> bool {
        matches!(self.code(), Some(400 | 403 | 422))
    }

    /// Returns whether a quota refused the object. It may have room later.
    pub fn is_quota_refusal(&self) -> bool {
        let Self::Api { source: kube::Error::Api(status), .. } = self else { return false };
        // The admission plugin of quotas has no reason of its own.
        let is_of_quota = ["exceeded quota: ", "failed quota: "].iter().any(|text| status.message.contains(text));
        status.code == 403 && is_of_quota
    }

    /// The label value for metrics.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Api { .. } if self.is_conflict() => "conflict",
            Self::Api { .. } if self.is_gone() => "gone",
            Self::Api { .. } => "api",
            Self::Deleting { .. } => "conflict",
            Self::Refused { .. } => "refused",
            Self::Unreadable { .. } => "unreadable",
            Self::Json { .. } | Self::Incomplete { .. } | Self::Unowned { .. } => "internal",
        }
    }

    /// Returns the delay before the next try, after this number of consecutive failures of an object.
    ///
    /// The delay is random, between the bound of `backoff` and twice this bound, so that objects that failed
    /// together are not retried together.
    pub fn retry_delay(&self, failures: u32) -> Duration {
        let failures = failures.clamp(1, MAX_COUNTED_FAILURES);
        let mut delays = self.backoff(failures).with_jitter().build();
        delays.nth(usize::try_from(failures - 1).unwrap_or_default()).unwrap_or_default()
    }

    /// The lower bound of the delay after each failure. Jitter at most doubles it.
    fn backoff(&self, failures: u32) -> ExponentialBuilder {
        let (first, longest) = match self {
            // A refusal lasts until a quota or a policy is changed.
            Self::Refused { .. } => (Duration::from_millis(2500), Duration::from_mins(5)),
            // The cache needs only a moment to catch up with the other writer.
            _ if self.is_conflict() && failures <= MAX_QUICK_RETRIES => {
                (Duration::from_millis(25), Duration::from_mins(1))
            }
            _ => (Duration::from_millis(250), Duration::from_mins(1)),
        };
        ExponentialBuilder::new().with_min_delay(first).with_max_delay(longest).without_max_times()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kube::core::Status;
    use rstest::rstest;

    fn refused(code: u16) -> Error {
        refused_with(code, "no")
    }

    fn refused_with(code: u16, message: &str) -> Error {
        Error::api("apply Service acme/orders-mcp")(kube::Error::Api(Box::new(
            Status::failure(message, "No").with_code(code),
        )))
    }

    const DENIED: &str = "admission webhook \"pods.example.com\" denied the request: not now";
    const DOWN: &str = "Internal error occurred: failed calling webhook \"pods.example.com\": failed to call webhook: Post \
         \"https://hook.example.svc:443/\": connect: connection refused";

    #[rstest]
    #[case::content(422, "spec.ports: Required value", true, true)]
    #[case::webhook(403, DENIED, true, true)]
    #[case::webhook_that_says_conflict(409, DENIED, true, false)]
    #[case::webhook_that_says_gone(404, DENIED, true, false)]
    #[case::webhook_that_says_overload(429, DENIED, true, false)]
    #[case::webhook_that_is_down(500, DOWN, true, false)]
    #[case::conflict(409, "the object has been modified", false, false)]
    #[case::gone(404, "namespaces \"acme\" not found", false, false)]
    #[case::overload(429, "too many requests", false, false)]
    #[case::unavailable(503, "apiserver is shutting down", false, false)]
    fn a_refusal_by_a_webhook_is_named_whatever_its_code_is(
        #[case] code: u16,
        #[case] message: &str,
        #[case] is_refusal: bool,
        #[case] is_lasting: bool,
    ) {
        let error = refused_with(code, message);
        assert_eq!(error.refusal(), is_refusal.then_some(message));
        assert_eq!(error.lasting_refusal(), is_lasting.then_some(message));
        let is_other = error.is_conflict() || error.is_gone();
        assert_eq!(is_other, !is_refusal && matches!(code, 404 | 409));
    }

    #[test]
    fn delays_grow_and_are_bounded() {
        let bounds: Vec<Duration> = refused(500).backoff(1).build().take(30).collect();
        assert!(bounds.is_sorted() && bounds[0] < bounds[1]);
        let pauses: Vec<Duration> = (1..30).map(|failures| refused(500).retry_delay(failures)).collect();
        assert!(pauses.iter().zip(&bounds).all(|(pause, bound)| bound <= pause && *pause <= 2 * *bound), "{pauses:?}");
        assert!(pauses.iter().all(|pause| *pause <= Duration::from_mins(2)));
        assert!(refused(409).retry_delay(1) < Duration::from_millis(100));
    }

    #[test]
    fn the_message_names_the_request_and_the_object() {
        assert!(refused(403).to_string().starts_with("cannot apply Service acme/orders-mcp: "));
        assert!(refused(404).is_gone() && refused(409).is_conflict());
    }
}
