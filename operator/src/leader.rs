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
const DURATION_SECONDS: u64 = 15;

/// How long before that a leader renews, in seconds. No request for the lease may take longer ([`REQUEST_LIMIT`]).
const GRACE_SECONDS: u64 = 5;

/// How long a request for the lease may take: a leader that cannot renew knows it before another one takes over.
pub const REQUEST_LIMIT: Duration = Duration::from_secs(4);

/// How often the lease of another replica is looked at: one that is given back is taken over at once.
const LOOK: Duration = Duration::from_secs(1);

/// The pause after an error.
const RETRY: Duration = Duration::from_secs(1);

/// Whether this replica leads.
#[derive(Debug, Clone)]
pub struct Leadership(watch::Receiver<bool>);

impl Leadership {
    /// Makes the two ends: what is known, and what says so.
    pub fn channel() -> (watch::Sender<bool>, Self) {
        let (teller, known) = watch::channel(false);
        (teller, Self(known))
    }

    /// Whether this replica leads now.
    pub fn is_leader(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until this replica leads.
    pub async fn gained(&self) {
        self.reaches(true).await;
    }

    /// Waits until this replica does not lead any more.
    pub async fn lost(&self) {
        self.reaches(false).await;
    }

    async fn reaches(&self, wanted: bool) {
        // Without a teller nothing leads, and nothing will.
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
    teller: watch::Sender<bool>,
    metrics: &Arc<Metrics>,
    shutdown: CancellationToken,
) {
    let tell = |leads: bool| {
        let changed = teller.send_replace(leads) != leads;
        metrics.leads(leads);
        if changed {
            tracing::info!(leads, lease = settings.lease_name, "leadership changed");
        }
    };
    while !shutdown.is_cancelled() {
        let term = tokio::select! {
            term = term(&client, settings, &tell) => term,
            () = shutdown.cancelled() => break,
        };
        tell(false);
        if let Err(error) = term {
            tracing::warn!(%error, lease = settings.lease_name, "the lease cannot be held; not leading");
        }
        tokio::select! {
            () = tokio::time::sleep(RETRY) => {}
            () = shutdown.cancelled() => {}
        }
    }
    let led = *teller.borrow();
    tell(false);
    if led && let Err(error) = give_back(client, settings).await {
        tracing::warn!(%error, "the lease could not be given back; it runs out by itself");
    }
}

async fn term(client: &Client, settings: &Settings, tell: &impl Fn(bool)) -> Result<(), LeaseManagerError> {
    loop {
        let manager = gained(client, settings).await?;
        tell(true);
        while manager.changed().await? {}
        tell(false);
    }
}

/// Waits until this replica holds the lease.
///
/// A manager that has seen the lease of another one sleeps until that would run out, and never learns that it was
/// given back: each rollout would be without a leader for so long. So the lease is looked at beside it, and a new
/// manager begins with what is true now.
async fn gained(client: &Client, settings: &Settings) -> Result<LeaseManager, LeaseManagerError> {
    loop {
        let manager = manager(client.clone(), settings).await?;
        let leads = tokio::select! {
            leads = manager.changed() => leads?,
            () = freed(client, settings) => false,
        };
        if leads {
            return Ok(manager);
        }
    }
}

/// Waits until nobody holds the lease.
async fn freed(client: &Client, settings: &Settings) {
    let api: Api<Lease> = Api::namespaced(client.clone(), &settings.pod_namespace);
    loop {
        tokio::time::sleep(LOOK).await;
        // What cannot be read is not known to be free.
        let Ok(lease) = api.get_opt(&settings.lease_name).await else { continue };
        if lease.and_then(|lease| lease.spec?.holder_identity).is_none() {
            return;
        }
    }
}

async fn give_back(client: Client, settings: &Settings) -> Result<(), LeaseManagerError> {
    manager(client, settings).await?.release().await
}

async fn manager(client: Client, settings: &Settings) -> Result<LeaseManager, LeaseManagerError> {
    LeaseManagerBuilder::new(client, &settings.lease_name)
        .with_namespace(&settings.pod_namespace)
        .with_identity(&settings.pod_name)
        .with_field_manager(format!("bloomery-{}", settings.pod_name))
        .with_duration(DURATION_SECONDS)
        .with_grace(GRACE_SECONDS)
        .build()
        .await
}

#[cfg(test)]
mod tests;
