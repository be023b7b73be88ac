//! Which CAs workers may trust, handed from the report endpoint to the Job controller.

use std::sync::Arc;
use tokio::sync::watch;

/// The certificates that sign the report endpoint, now and in the lifetime of any pod made now.
#[derive(Debug, Clone, Default)]
pub struct CaBundle(Arc<watch::Sender<Option<String>>>);

impl CaBundle {
    /// The certificates as PEM; none before the CA is known.
    pub fn pem(&self) -> Option<String> {
        self.0.borrow().clone()
    }

    /// Makes the certificates known.
    pub fn set(&self, bundle: String) {
        self.0.send_replace(Some(bundle));
    }

    /// Waits until the CA is known.
    pub async fn known(&self) {
        // The sender is this very object, and cannot be gone.
        let _ = self.0.subscribe().wait_for(Option::is_some).await;
    }
}
