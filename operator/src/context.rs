//! The state that all controllers and servers of the operator share.

use crate::apply::Applier;
use crate::approval::void_pace::VoidPace;
use crate::caches::Caches;
use crate::events::Events;
use crate::health::Readiness;
use crate::leader::Leadership;
use crate::metrics::Metrics;
use crate::pod_seals::PodSeals;
use crate::recent_revisions::RecentRevisions;
use crate::server_tokens::ServerTokens;
use crate::settings::Settings;
use crate::status::Statuses;
use crate::tenant::TenantLimits;
use kube::Client;
use std::sync::Arc;

/// The state that all controllers and servers of the operator share.
pub struct Context {
    /// The client of the API server.
    pub client: Client,
    /// The settings of the installation.
    pub settings: Settings,
    /// The watched state of the cluster.
    pub caches: Caches,
    /// Writes objects where something would change.
    pub applier: Applier,
    /// Writes statuses where they would change.
    pub statuses: Statuses,
    /// Limits how many Approvals are replaced at once.
    pub void_pace: VoidPace,
    /// Publishes Kubernetes Events.
    pub events: Events,
    /// The metrics.
    pub metrics: Arc<Metrics>,
    /// The CA certificates of the report endpoint.
    pub report_ca_bundle: crate::report::CaBundle,
    /// The revisions that Jobs started on last.
    pub recent_revisions: RecentRevisions,
    /// The seals of worker pods.
    pub pod_seals: PodSeals,
    /// Signs the tokens for MCP servers.
    pub server_tokens: ServerTokens,
    /// The readiness of the parts of this process.
    pub readiness: Readiness,
    /// The leadership of this replica.
    pub leadership: Leadership,
}

impl Context {
    /// Returns the limits of a namespace.
    pub fn tenant_limits(&self, namespace: &str) -> TenantLimits {
        TenantLimits::new(&self.settings.tenants, &self.caches.annotations(namespace))
    }
}
