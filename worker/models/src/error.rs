//! Why there is no answer.

use bloomery_engine::event::ModelFailure;

/// What the user can do after all retries failed.
pub(crate) const REMEDY: &str = "Mend that, and make the Job anew.";

/// Why there is no answer, in sentences of bounded length that contain no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// Whether the engine may repeat the request.
    pub kind: ModelFailure,
    /// The reason, the Model that it concerns, and what to do.
    pub message: String,
}

/// Why one Model is no longer asked.
#[derive(Debug)]
pub(crate) struct ModelError {
    pub(crate) error: Error,
    /// How often and for how long the Model was asked. `None` if asking again is of no use.
    pub(crate) attempts: Option<String>,
}

impl ModelError {
    /// Returns whether another Model may answer the request.
    pub(crate) fn concerns_only_this_model(&self) -> bool {
        self.error.kind == ModelFailure::Unavailable
    }

    /// Returns the error for a request that no other Model can answer.
    pub(crate) fn into_final(self) -> Error {
        let Self { error: Error { kind, message }, attempts } = self;
        let message = match attempts {
            Some(attempts) => format!("{message} It was tried {attempts}. {REMEDY}"),
            None => message,
        };
        Error { kind, message }
    }
}
