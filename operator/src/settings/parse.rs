//! Parses the values of settings.

use super::network::NetworkSettings;
use super::pod_defaults::{Amounts, PodDefaults};
use super::tenants::TenantSettings;
use crate::apply::quantity;
use crate::approval::policy::ShippedPolicies;
use bloomery_crds::tool_pattern::is_pattern;
use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::time::Duration;
use tracing_subscriber::EnvFilter;

/// The reason why the value of a setting is invalid.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The value is empty.
    #[error("must not be empty")]
    Empty,
    /// The value is not the name of a namespace.
    #[error("must be names of namespaces such as acme,beta")]
    Namespace,
    /// The value is not a log filter.
    #[error("must be a log filter such as info or kube=debug,info: {0}")]
    LogFilter(#[from] tracing_subscriber::filter::ParseError),
    /// The value is not the HTTPS address of a server.
    #[error("must be https://<host>[:<port>], without a path")]
    Url,
    /// The value is not a `ResourceRequirements`.
    #[error(
        "must be the JSON of a Kubernetes ResourceRequirements, such as {{\"limits\":{{\"memory\":\"256Mi\"}}}}: {0}"
    )]
    Resources(#[source] serde_json::Error),
    /// The value is not a map of quantities.
    #[error("must be JSON of Kubernetes quantities, such as {{\"memory\":\"2Gi\"}}: {0}")]
    Amounts(#[source] serde_json::Error),
    /// The value is not a [`PodDefaults`].
    #[error(
        "must be JSON with imagePullSecrets, nodeSelector, tolerations, priorityClassName, runtimeClassName, hostUsers, podLabels, podAnnotations and skillMaySet, such as {{\"nodeSelector\":{{\"disk\":\"ssd\"}}}}: {0}"
    )]
    PodDefaults(#[source] serde_json::Error),
    /// The value is not a [`NetworkSettings`].
    #[error("must be JSON of policies, dns, shared, deny and operator, such as {{\"policies\":true}}: {0}")]
    Network(#[source] serde_json::Error),
    /// No DNS server may be asked.
    #[error("dns.peers and dns.ports must not be empty")]
    NoDns,
    /// The value is not a [`TenantSettings`].
    #[error(
        "must be JSON of allowedImages, maxLimits, allowedTools, blockedTools, allowedModels and allowedModelUrls, such as {{\"blockedTools\":[\"delete_*\"]}}: {0}"
    )]
    Tenants(#[source] serde_json::Error),
    /// An entry of a tool policy names no tool.
    #[error("{0:?} must be the name of a tool, or a prefix of names with * at the end")]
    Tool(String),
    /// The value is not a quantity.
    #[error("must be a Kubernetes quantity such as 1Gi")]
    Quantity,
    /// The value is not the JSON of a [`ShippedPolicies`].
    #[error("must be the JSON that the chart writes: {0}")]
    ShippedPolicies(#[source] serde_json::Error),
    /// The value is not a duration.
    #[error("must be a duration such as 10m: {0}")]
    Duration(#[from] bloomery_crds::duration::Error),
    /// The duration is negative.
    #[error("must not be negative")]
    NegativeDuration,
    /// The duration is zero.
    #[error("must be longer than 0s")]
    ZeroDuration,
}

/// Parses a text that is not blank.
pub(super) fn not_empty(text: &str) -> Result<String, Error> {
    if text.trim().is_empty() { Err(Error::Empty) } else { Ok(text.to_owned()) }
}

/// Parses the name of a namespace, a DNS-1123 label.
pub(super) fn namespace(text: &str) -> Result<String, Error> {
    const MAX_LABEL_BYTES: usize = 63;
    let is_edge = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_label = text.starts_with(is_edge) && text.ends_with(is_edge) && text.chars().all(|c| is_edge(c) || c == '-');
    if is_label && text.len() <= MAX_LABEL_BYTES { Ok(text.to_owned()) } else { Err(Error::Namespace) }
}

/// Parses a log filter.
pub(super) fn log_filter(text: &str) -> Result<String, Error> {
    text.parse::<EnvFilter>()?;
    Ok(text.to_owned())
}

/// Parses an HTTPS URL without a path.
pub(super) fn https_url(text: &str) -> Result<String, Error> {
    let url = text.trim_end_matches('/');
    let host = url.strip_prefix("https://").unwrap_or_default();
    if host.is_empty() || host.contains(['/', '?', '#', '@', ' ']) {
        return Err(Error::Url);
    }
    Ok(url.to_owned())
}

/// Parses the resources of a container.
pub(super) fn resources(text: &str) -> Result<ResourceRequirements, Error> {
    serde_json::from_str(text).map_err(Error::Resources)
}

/// Parses amounts of resources.
pub(super) fn amounts(text: &str) -> Result<Amounts, Error> {
    let amounts: Amounts = serde_json::from_str(text).map_err(Error::Amounts)?;
    amounts.values().try_for_each(|amount| quantity(&amount.0).map(drop))?;
    Ok(amounts)
}

/// Parses the fields that an installation sets in its pods.
pub(super) fn pod_defaults(text: &str) -> Result<PodDefaults, Error> {
    serde_json::from_str(text).map_err(Error::PodDefaults)
}

/// Parses the network of tenants. Ports without a protocol are TCP, as for the API server.
pub(super) fn network(text: &str) -> Result<NetworkSettings, Error> {
    let mut network: NetworkSettings = serde_json::from_str(text).map_err(Error::Network)?;
    if network.dns.peers.is_empty() || network.dns.ports.is_empty() {
        // A rule without peers or ports would allow all of them.
        return Err(Error::NoDns);
    }
    for port in network.dns.ports.iter_mut().chain(network.shared.iter_mut().flat_map(|shared| &mut shared.ports)) {
        port.protocol.get_or_insert_with(|| "TCP".to_owned());
    }
    Ok(network)
}

/// Parses the limits of tenants.
pub(super) fn tenants(text: &str) -> Result<TenantSettings, Error> {
    let tenants: TenantSettings = serde_json::from_str(text).map_err(Error::Tenants)?;
    let mut tools = tenants.allowed_tools.iter().chain(&tenants.blocked_tools);
    match tools.find(|tool| !is_pattern(tool)) {
        Some(tool) => Err(Error::Tool(tool.clone())),
        None => Ok(tenants),
    }
}

/// Parses a Kubernetes quantity.
pub(super) fn quantity(text: &str) -> Result<Quantity, Error> {
    quantity::parse(text).map(|_| Quantity(text.to_owned())).ok_or(Error::Quantity)
}

/// Parses a Kubernetes quantity of whole bytes.
pub(super) fn bytes(text: &str) -> Result<u64, Error> {
    let thousandths = quantity::parse(text).filter(|thousandths| thousandths % 1000 == 0).ok_or(Error::Quantity)?;
    u64::try_from(thousandths / 1000).map_err(|_| Error::Quantity)
}

/// Parses the shipped admission policy.
pub(super) fn shipped_policies(text: &str) -> Result<ShippedPolicies, Error> {
    serde_json::from_str(text).map_err(Error::ShippedPolicies)
}

/// Parses a duration in the notation of Kubernetes.
pub(super) fn duration(text: &str) -> Result<Duration, Error> {
    let parsed = bloomery_crds::duration::parse(text)?;
    if parsed.is_negative() {
        return Err(Error::NegativeDuration);
    }
    Ok(parsed.into())
}

/// Parses a duration that is not zero.
pub(super) fn positive_duration(text: &str) -> Result<Duration, Error> {
    let parsed = duration(text)?;
    if parsed.is_zero() { Err(Error::ZeroDuration) } else { Ok(parsed) }
}
