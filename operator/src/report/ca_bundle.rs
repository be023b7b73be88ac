//! The CA certificates of the report endpoint, passed from the report endpoint to the Job controller.

use std::sync::Arc;
use tokio::sync::watch;

/// The CA certificates that a pod created now has to trust: each may sign a certificate of the report endpoint during the
/// lifetime of that pod.
#[derive(Debug, Clone, Default)]
pub struct CaBundle(Arc<watch::Sender<Option<String>>>);

impl CaBundle {
    /// The certificates as PEM; none before the CA is known.
    pub fn pem(&self) -> Option<String> {
        self.0.borrow().clone()
    }

    /// Sets the certificates.
    pub fn set(&self, bundle: String) {
        self.0.send_replace(Some(bundle));
    }

    /// Waits until the CA is known.
    pub async fn wait_until_known(&self) {
        // The sender is this object, so the channel stays open.
        let _ = self.0.subscribe().wait_for(Option::is_some).await;
    }
}
