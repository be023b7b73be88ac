//! The errors of requests to models.

use bloomery_engine::event::ModelFailure;

/// The advice after all retries failed.
pub(crate) const REMEDY: &str = "Fix the cause, and start the Job again.";

/// The error of a request to a model. Its message has a bounded length and contains no key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// The kind of failure. It decides whether the engine may repeat the request.
    pub kind: ModelFailure,
    /// The Model, the reason, and the remedy, in sentences.
    pub message: String,
}

/// The error of one Model, after all its retries.
#[derive(Debug)]
pub(crate) struct ModelError {
    pub(crate) error: Error,
    /// The number and the duration of the tries, as text. `None` if a retry would fail again.
    pub(crate) tries: Option<String>,
}

impl ModelError {
    /// Returns whether another Model may answer the request.
    pub(crate) fn concerns_only_this_model(&self) -> bool {
        self.error.kind == ModelFailure::Unavailable
    }

    /// Returns the error of the whole request, if no other Model is asked.
    pub(crate) fn into_final(self) -> Error {
        let Self { error: Error { kind, message }, tries } = self;
        let message = match tries {
            Some(tries) => format!("{message} It was tried {tries}. {REMEDY}"),
            None => message,
        };
        Error { kind, message }
    }
}
