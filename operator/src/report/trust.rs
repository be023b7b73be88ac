//! Which CAs workers may trust, handed from the report endpoint to the Job controller.

use std::sync::{Arc, PoisonError, RwLock};

/// The certificates that sign the report endpoint, now and in the lifetime of any pod made now.
#[derive(Debug, Clone, Default)]
pub struct Trust(Arc<RwLock<Option<String>>>);

impl Trust {
    /// The certificates as PEM; none before the CA is known.
    pub fn bundle(&self) -> Option<String> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes the certificates known.
    pub fn set(&self, bundle: String) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(bundle);
    }
}
