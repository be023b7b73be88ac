//! What pods connect to.

use crate::caches::Guarded;
use bloomery_crds::address;
use bloomery_crds::names::ANNOTATION_CONNECTS_TO;
use bloomery_crds::run::{BoundResource, ModelEndpoint, ResourceSource};
use bloomery_crds::v1alpha1::{McpEgress, McpServer, Model, ModelSpec, ResourceType, SkillSpec};
use k8s_openapi::api::core::v1::Pod;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// The port of https.
const HTTPS: u16 = 443;

/// A host and a port that a pod connects to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Destination {
    /// The name or the address. An IPv6 address has no brackets.
    pub host: String,
    /// The TCP port.
    pub port: u16,
}

impl Destination {
    /// Returns the destination of an http or https URL; none if the text is no such URL, which other checks report.
    pub fn of_url(url: &str) -> Option<Self> {
        address::host_and_port(url).map(|(host, port)| Self { host, port })
    }

    /// Returns what a worker connects to for a Model: its proxy, or else its server.
    pub fn of_model(spec: &ModelSpec) -> Option<Self> {
        Self::of_url(called(&spec.base_url, spec.proxy.as_deref()))
    }

    /// Returns whether the host is the Service with this name in a namespace.
    pub fn is_service(&self, namespace: &str, service: &str) -> bool {
        address::is_service(&self.host, namespace) && address::first_label(&self.host) == service
    }

    /// Returns the destination of an item of `mcpServer.egress`.
    pub fn of_egress(egress: &McpEgress) -> Self {
        Self { host: address::normalize(&egress.host), port: egress.port.unwrap_or(HTTPS) }
    }

    /// Returns what a worker connects to for an MCP server beside the server's own pods: a server that the operator does not run, or all
    /// that a sidecar connects to, which shares the network of the worker.
    fn of_worker(server: &McpServer) -> Vec<Self> {
        match server.sidecar() {
            Some(_) => server.egress.iter().map(Self::of_egress).collect(),
            None => Self::of_server(server).into_iter().collect(),
        }
    }

    /// Returns the destination of an MCP server that the operator does not run.
    pub fn of_server(server: &McpServer) -> Option<Self> {
        let of_service = || {
            let service = server.service.as_ref()?;
            Some(Self { host: service.name.clone(), port: service.port })
        };
        server.uri.as_deref().and_then(Self::of_url).or_else(of_service)
    }

    /// Reads a destination in an annotation.
    fn of_text(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let port = port.parse().ok().filter(|port: &u16| *port != 0)?;
        Some(Self { host: host.to_owned(), port })
    }
}

/// Returns destinations as the value of the annotation [`ANNOTATION_CONNECTS_TO`].
pub fn to_annotation(destinations: &BTreeSet<Destination>) -> String {
    let texts: Vec<String> = destinations.iter().map(|Destination { host, port }| format!("{host}:{port}")).collect();
    texts.join(" ")
}

/// Returns what the annotation [`ANNOTATION_CONNECTS_TO`] of a pod lists. Others may have edited it: texts that are no destination are left
/// out.
pub fn of_annotation(pod: &Pod) -> BTreeSet<Destination> {
    let text = pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(ANNOTATION_CONNECTS_TO));
    text.into_iter().flat_map(|text| text.split(' ')).filter_map(Destination::of_text).collect()
}

/// Returns what the workers of a Skill connect to: its Models with their fallbacks, and an MCP server that the operator does not run.
pub fn of_skill(spec: &SkillSpec, models: &BTreeMap<String, Arc<Guarded<Model>>>) -> BTreeSet<Destination> {
    let mut wanted: VecDeque<String> = spec.model_names().into_iter().map(str::to_owned).collect();
    let mut seen: BTreeSet<String> = wanted.iter().cloned().collect();
    let mut found: BTreeSet<Destination> = spec.mcp_server.iter().flat_map(Destination::of_worker).collect();
    while let Some(name) = wanted.pop_front() {
        let Some(Ok(model)) = models.get(&name).map(|model| &model.0) else { continue };
        wanted.extend(model.spec.fallback.iter().filter(|name| seen.insert((*name).clone())).cloned());
        found.extend(Destination::of_model(&model.spec));
    }
    found
}

/// Returns what the worker of an attempt connects to: its models, an MCP server that the operator does not run, and the bound APIs.
pub fn of_attempt(
    server: Option<&McpServer>,
    models: &[ModelEndpoint],
    bound: &[BoundResource],
) -> BTreeSet<Destination> {
    let models = models.iter().map(|model| called(&model.base_url, model.proxy.as_deref()));
    let apis = bound_apis(bound).map(|(_, url)| url);
    let mut found: BTreeSet<Destination> = models.chain(apis).filter_map(Destination::of_url).collect();
    found.extend(server.into_iter().flat_map(Destination::of_worker));
    found
}

/// Returns the APIs that a Job binds: the names of the resources, and their URLs.
pub fn bound_apis(bound: &[BoundResource]) -> impl Iterator<Item = (&str, &str)> {
    bound.iter().filter_map(|resource| match &resource.source {
        ResourceSource::Value(url) if resource.kind == ResourceType::ApiEndpoint => {
            Some((resource.name.as_str(), url.as_str()))
        }
        ResourceSource::Value(_)
        | ResourceSource::Secret(_)
        | ResourceSource::ForServer { .. }
        | ResourceSource::Mount { .. } => None,
    })
}

/// Returns the URL that a worker connects to for a Model: that of its proxy, or else that of its server.
fn called<'a>(base_url: &'a str, proxy: Option<&'a str>) -> &'a str {
    proxy.unwrap_or(base_url)
}
