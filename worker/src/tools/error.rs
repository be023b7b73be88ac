//! The error of a core tool's call.

use bloomery_crds::v1alpha1::Method;
use bloomery_mcp::describe_lost_call;

/// The reason why a call of a core tool did not succeed, as a text for the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The call had no effect, or only the effect that the text states.
    Failed(String),
    /// The call may have had an effect.
    Indeterminate(String),
}

impl Error {
    /// Returns the error of a call, given whether an earlier worker sent the call and lost its answer. Such a call may have had an
    /// effect even if it fails now.
    pub(super) fn after_lost_answer(self, sent_before: bool) -> Self {
        match self {
            Self::Failed(text) if sent_before => Self::Indeterminate(describe_lost_call(&text)),
            error => error,
        }
    }
}

impl From<String> for Error {
    fn from(text: String) -> Self {
        Self::Failed(text)
    }
}

/// Returns the error of a request that was sent and not answered. A request that only reads has failed. Any other request may have had an
/// effect.
pub(super) fn unanswered(method: Method, reason: &str) -> Error {
    if method.is_read() {
        Error::Failed(format!(
            "The endpoint did not answer: {reason}. A {method} changes nothing, so you may repeat it."
        ))
    } else {
        Error::Indeterminate(format!(
            "the request may have had an effect, because the endpoint did not confirm it: {reason}"
        ))
    }
}
