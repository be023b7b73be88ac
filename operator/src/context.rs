//! What every controller and server of the operator shares.

use crate::apply::Applier;
use crate::caches::Caches;
use crate::events::Events;
use crate::health::Readiness;
use crate::leader::Leadership;
use crate::metrics::Metrics;
use crate::settings::Settings;
use crate::status::Statuses;
use kube::Client;
use std::sync::Arc;

/// What every controller and server of the operator shares.
pub struct Context {
    /// The API server.
    pub client: Client,
    /// What the installation decided.
    pub settings: Settings,
    /// What is known of the cluster.
    pub caches: Caches,
    /// Writes objects, where something would change.
    pub applier: Applier,
    /// Writes statuses, where they would change.
    pub statuses: Statuses,
    /// Tells people.
    pub events: Events,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// Which CAs workers may trust when they report.
    pub report_ca_bundle: crate::report::CaBundle,
    /// Which parts are ready.
    pub readiness: Readiness,
    /// Whether this replica leads.
    pub leadership: Leadership,
}
