//! Leader election: one replica reconciles, and all replicas accept reports.

use crate::metrics::Metrics;
use crate::settings::Settings;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};
use kube_lease_manager::{LeaseManager, LeaseManagerBuilder, LeaseManagerError};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The lease duration in seconds: how long other replicas wait for a leader that disappeared.
const LEASE_SECONDS: u64 = 15;

/// The number of seconds before the end of the lease at which the leader renews it. Must be longer than
/// [`LEASE_REQUEST_TIMEOUT`].
const RENEWAL_GRACE_SECONDS: u64 = 5;

/// The timeout of a request for the lease. It is so short that a leader that cannot renew its lease stops before another
/// replica takes over.
pub const LEASE_REQUEST_TIMEOUT: Duration = Duration::from_secs(4);

/// The interval at which a replica checks the lease of another one, so that it takes over a released lease at once.
const LEASE_POLL_INTERVAL: Duration = Duration::from_secs(1);

/// The pause after an error.
const ELECTION_RETRY_DELAY: Duration = Duration::from_secs(1);

/// The leadership of this replica, which may change at any time.
#[derive(Debug, Clone)]
pub struct Leadership(watch::Receiver<bool>);

impl Leadership {
    /// Creates the sender and the receiver of the leadership.
    pub fn channel() -> (watch::Sender<bool>, Self) {
        let (sender, receiver) = watch::channel(false);
        (sender, Self(receiver))
    }

    /// Returns whether this replica leads now.
    pub fn is_leader(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until this replica leads.
    pub async fn wait_until_gained(&self) {
        self.wait_for(true).await;
    }

    /// Waits until this replica does not lead any more.
    pub async fn wait_until_lost(&self) {
        self.wait_for(false).await;
    }

    async fn wait_for(&self, wanted: bool) {
        // Without a sender this replica never leads: a wait for the leadership never ends, and a wait for its loss ends at
        // once.
        if self.0.clone().wait_for(|leads| *leads == wanted).await.is_err() && wanted {
            std::future::pending::<()>().await;
        }
    }
}

/// Competes for the lease until the shutdown, and then releases it.
///
/// On any error the replica stops leading at once: two leaders are worse than none for a second. If two replicas lead
/// nevertheless, resource versions and UIDs keep them from overwriting each other.
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
        let result = tokio::select! {
            result = hold_lease(&client, settings, &set_leading) => result,
            () = shutdown.cancelled() => break,
        };
        set_leading(false);
        if let Err(error) = result {
            tracing::warn!(%error, lease = settings.lease_name, "the lease cannot be held; not leading");
        }
        tokio::select! {
            () = tokio::time::sleep(ELECTION_RETRY_DELAY) => {}
            () = shutdown.cancelled() => {}
        }
    }
    let was_leading = *sender.borrow();
    set_leading(false);
    if was_leading && let Err(error) = release(client, settings).await {
        tracing::warn!(%error, "the lease could not be released; it expires by itself");
    }
}

/// Competes for the lease and calls `set_leading` at each change, until an error.
async fn hold_lease(
    client: &Client,
    settings: &Settings,
    set_leading: &impl Fn(bool),
) -> Result<(), LeaseManagerError> {
    loop {
        let manager = acquire(client, settings).await?;
        set_leading(true);
        // `changed` returns false once this replica no longer holds the lease.
        while manager.changed().await? {}
        set_leading(false);
    }
}

/// Waits until this replica holds the lease.
///
/// A lease manager that has seen another holder sleeps until that lease would expire, and does not notice a release.
/// Each rollout would then be without a leader for that time. Therefore a separate check notices a release and starts a
/// new manager.
async fn acquire(client: &Client, settings: &Settings) -> Result<LeaseManager, LeaseManagerError> {
    loop {
        let manager = build_manager(client.clone(), settings).await?;
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
        // An unreadable lease is not known to be free.
        let Ok(lease) = api.get_opt(&settings.lease_name).await else { continue };
        if lease.and_then(|lease| lease.spec?.holder_identity).is_none() {
            return;
        }
    }
}

async fn release(client: Client, settings: &Settings) -> Result<(), LeaseManagerError> {
    build_manager(client, settings).await?.release().await
}

async fn build_manager(client: Client, settings: &Settings) -> Result<LeaseManager, LeaseManagerError> {
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
