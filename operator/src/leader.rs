//! Leadership: of all replicas, one reconciles. All of them take reports.

use crate::metrics::Metrics;
use crate::settings::Settings;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder, LeaseManagerError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// How long a leader that is gone without a word is waited for, in seconds.
const LEASE_SECONDS: u64 = 15;

/// How long before that a leader renews, in seconds. No request for the lease may take longer ([`REQUEST_TIMEOUT`]).
const RENEWAL_GRACE_SECONDS: u64 = 5;

/// How long a request for the lease may take: a leader that cannot renew knows it before another one takes over.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(4);

/// How often the lease of another replica is looked at: one that is given back is taken over at once.
const LEASE_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The pause after an error.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Whether this replica leads.
#[derive(Debug, Clone)]
pub struct Leadership(watch::Receiver<bool>);

impl Leadership {
    /// Makes the two ends: what is known, and what says so.
    pub fn channel() -> (watch::Sender<bool>, Self) {
        let (sender, known) = watch::channel(false);
        (sender, Self(known))
    }

    /// Whether this replica leads now.
    pub fn is_leader(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until this replica leads.
    pub async fn gained(&self) {
        self.wait_for(true).await;
    }

    /// Waits until this replica does not lead any more.
    pub async fn lost(&self) {
        self.wait_for(false).await;
    }

    async fn wait_for(&self, wanted: bool) {
        // Without a sender nothing leads, and nothing will.
        if self.0.clone().wait_for(|leads| *leads == wanted).await.is_err() && wanted {
            std::future::pending::<()>().await;
        }
    }
}

/// Competes for the lease until the shutdown, and then gives it back.
///
/// Any error means not leading, at once: two leaders would be worse than none for a second. What two leaders
/// could still write at the same time is refused by resource versions and UIDs.
pub async fn compete(
    client: Client,
    settings: &Settings,
    sender: watch::Sender<bool>,
    metrics: &Arc<Metrics>,
    shutdown: CancellationToken,
) {
    let set_leading = |leads: bool| {
        let changed = sender.send_replace(leads) != leads;
        metrics.set_leader(leads);
        if changed {
            tracing::info!(leads, lease = settings.lease_name, "leadership changed");
        }
    };
    while !shutdown.is_cancelled() {
        let term = tokio::select! {
            term = hold_lease(&client, settings, &set_leading) => term,
            () = shutdown.cancelled() => break,
        };
        set_leading(false);
        if let Err(error) = term {
            tracing::warn!(%error, lease = settings.lease_name, "the lease cannot be held; not leading");
        }
        tokio::select! {
            () = tokio::time::sleep(RETRY_DELAY) => {}
            () = shutdown.cancelled() => {}
        }
    }
    let led = *sender.borrow();
    set_leading(false);
    if led && let Err(error) = release(client, settings).await {
        tracing::warn!(%error, "the lease could not be given back; it runs out by itself");
    }
}

async fn hold_lease(
    client: &Client,
    settings: &Settings,
    set_leading: &impl Fn(bool),
) -> Result<(), LeaseManagerError> {
    loop {
        let manager = acquire(client, settings).await?;
        set_leading(true);
        while manager.changed().await? {}
        set_leading(false);
    }
}

/// Waits until this replica holds the lease.
///
/// A manager that has seen the lease of another one sleeps until that would run out, and never learns that it was
/// given back: each rollout would be without a leader for so long. So the lease is looked at beside it, and a new
/// manager begins with what is true now.
async fn acquire(client: &Client, settings: &Settings) -> Result<LeaseManager, LeaseManagerError> {
    loop {
        let manager = manager(client.clone(), settings).await?;
        let leads = tokio::select! {
            leads = manager.changed() => leads?,
            () = wait_until_free(client, settings) => false,
        };
        if leads {
            return Ok(manager);
        }
    }
}

/// Waits until nobody holds the lease.
async fn wait_until_free(client: &Client, settings: &Settings) {
    let api: Api<Lease> = Api::namespaced(client.clone(), &settings.pod_namespace);
    loop {
        tokio::time::sleep(LEASE_POLL_INTERVAL).await;
        // What cannot be read is not known to be free.
        let Ok(lease) = api.get_opt(&settings.lease_name).await else { continue };
        if lease.and_then(|lease| lease.spec?.holder_identity).is_none() {
            return;
        }
    }
}

async fn release(client: Client, settings: &Settings) -> Result<(), LeaseManagerError> {
    manager(client, settings).await?.release().await
}

async fn manager(client: Client, settings: &Settings) -> Result<LeaseManager, LeaseManagerError> {
    LeaseManagerBuilder::new(client, &settings.lease_name)
        .with_namespace(&settings.pod_namespace)
        .with_identity(&settings.pod_name)
        .with_field_manager(format!("bloomery-{}", settings.pod_name))
        .with_duration(LEASE_SECONDS)
        .with_grace(RENEWAL_GRACE_SECONDS)
        .build()
        .await
}

#[cfg(test)]
mod tests;
