//! Checks the bindings of a Job against the resources that its Skill declares (`docs/explanation/engine.md`, section 4).

use crate::nearest::did_you_mean;
use crate::text::single_line_fault;
use crate::v1alpha1::{Binding, McpServer, ResourceDeclaration, ResourceType, SkillSpec};
use std::collections::BTreeMap;
use url::Url;

/// The longest value of a binding, in bytes.
const MAX_VALUE_BYTES: usize = crate::persona::MAX_VALUE_BYTES;

/// Returns all faults of a Job's bindings. Each is a sentence that begins with the path of its field. No sentence contains a
/// value, because a value may be a secret in the wrong field.
///
/// If several resources have the same name, the first counts.
pub fn faults(declared: &[ResourceDeclaration], bound: &BTreeMap<String, Binding>) -> Vec<String> {
    let missing =
        declared.iter().filter(|resource| resource.required == Some(true) && !bound.contains_key(&resource.name));
    let missing = missing.map(|resource| {
        format!(
            "spec.resources.{}: the Skill requires this {}: bind {}.",
            resource.name,
            resource.kind,
            required_field(resource.kind)
        )
    });
    let wrong = bound.iter().flat_map(|(name, binding)| {
        let faults = match declared.iter().find(|resource| resource.name == *name) {
            Some(resource) => binding_faults(resource.kind, binding),
            None => vec![undeclared_fault(name, declared)],
        };
        faults.into_iter().map(move |fault| format!("spec.resources.{}: {fault}", crate::text::bounded(name, 64)))
    });
    let unauthenticated = missing_credentials(declared, |name| bound.contains_key(name));
    missing.chain(wrong).chain(unauthenticated.map(|fault| format!("spec.resources.{fault}"))).collect()
}

/// Returns a sentence for each bound endpoint whose credential is not bound. Each sentence begins with the name of the credential.
/// Required credentials are left out, because [`faults`] reports them as missing.
pub fn missing_credentials<'d>(
    declared: &'d [ResourceDeclaration],
    is_bound: impl Fn(&str) -> bool + Copy + 'd,
) -> impl Iterator<Item = String> + 'd {
    let endpoints = declared.iter().filter(move |resource| is_bound(&resource.name));
    endpoints.filter_map(move |endpoint| {
        let credential = &endpoint.auth.as_ref()?.credential;
        let is_required = declared.iter().any(|other| other.name == *credential && other.required == Some(true));
        (!is_bound(credential) && !is_required).then(|| {
            format!(
                "{credential}: calls of `{}`, which is bound, need this credential: bind it too, or leave out `{}`.",
                endpoint.name, endpoint.name
            )
        })
    })
}

/// A declared secret that no tool gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnusedSecret<'a> {
    /// The index of the declaration.
    pub index: usize,
    /// The name of the resource.
    pub name: &'a str,
    /// Why no tool gets it, as the rest of a sentence that begins with the name.
    pub reason: &'static str,
    /// What to do.
    pub remedy: &'static str,
}

/// Returns whether an endpoint uses the credential with this name.
pub fn is_used_by_endpoint(declared: &[ResourceDeclaration], name: &str) -> bool {
    declared.iter().filter_map(|endpoint| endpoint.auth.as_ref()).any(|auth| auth.credential == name)
}

/// Returns whether the MCP server of each Job gets the secret with this name.
pub fn is_for_server(server: Option<&McpServer>, name: &str) -> bool {
    let bindings = server.and_then(McpServer::sidecar).into_iter().flat_map(|container| &container.bindings);
    bindings.into_iter().any(|binding| binding.resource == name)
}

/// Returns the declared secrets that no tool gets: those that the MCP server of a Job does not get and no endpoint uses.
pub fn unused_secrets(spec: &SkillSpec) -> impl Iterator<Item = UnusedSecret<'_>> {
    let (declared, server) = (&spec.resources, spec.mcp_server.as_ref());
    declared.iter().enumerate().filter_map(move |(index, resource)| {
        let (reason, remedy) = match resource.kind {
            _ if is_for_server(server, &resource.name) => return None,
            ResourceType::ConnectionString => (
                "reaches nothing, because only an MCP server of scope Job gets a connection_string",
                "name it in spec.mcpServer.container.bindings, with scope Job; or give a Secret of all Jobs to the server, in \
                 spec.mcpServer.container.env",
            ),
            ResourceType::Credential if !is_used_by_endpoint(declared, &resource.name) => (
                "reaches nothing, because no api_endpoint uses it",
                "name it in auth.credential of an api_endpoint, or in spec.mcpServer.container.bindings, with scope Job; or give a \
                 Secret of all Jobs to the server, in spec.mcpServer.container.env",
            ),
            _ => return None,
        };
        Some(UnusedSecret { index, name: &resource.name, reason, remedy })
    })
}

/// Returns the fault of a binding whose name the Skill does not declare, as the rest of a sentence that begins with the name.
pub fn undeclared_fault(name: &str, declared: &[ResourceDeclaration]) -> String {
    if declared.is_empty() {
        return "the Skill declares no resources: leave it out.".to_owned();
    }
    let names: Vec<&str> = declared.iter().map(|resource| resource.name.as_str()).collect();
    format!(
        "the Skill declares no such resource, only {}.{}",
        names.join(", "),
        did_you_mean(name, names.iter().copied())
    )
}

/// Returns the field that a binding of this type needs, for messages.
fn required_field(kind: ResourceType) -> &'static str {
    match kind {
        ResourceType::Filesystem => "a persistentVolumeClaim",
        ResourceType::ApiEndpoint => "an http or https URL as value",
        ResourceType::ConnectionString | ResourceType::Credential => "a secretKeyRef",
    }
}

/// Returns the faults of one binding, each as the rest of a sentence that begins with the name of the resource.
pub fn binding_faults(kind: ResourceType, binding: &Binding) -> Vec<String> {
    // Destructured, so that the compiler reports a new field that `given` lacks.
    let Binding { value, secret_key_ref, persistent_volume_claim } = binding;
    let mut faults = Vec::new();
    let given = [
        ("value", value.is_some(), kind == ResourceType::ApiEndpoint),
        ("secretKeyRef", secret_key_ref.is_some(), kind.is_secret()),
        ("persistentVolumeClaim", persistent_volume_claim.is_some(), kind == ResourceType::Filesystem),
    ];
    let is_vault_reference =
        value.as_deref().is_some_and(|value| value.trim_start().to_ascii_lowercase().starts_with("vault:"));
    for (field, _, _) in
        given.iter().filter(|(field, is_given, fits)| *is_given && !fits && !(is_vault_reference && *field == "value"))
    {
        faults.push(format!("{field} does not fit the type {kind}, which takes {}.", required_field(kind)));
    }
    if is_vault_reference {
        faults.push(format!(
            "vault: references are not supported: let External Secrets Operator or Vault Secrets Operator write the value into \
             a Secret, and bind {}.",
            required_field(kind)
        ));
    }
    if given.iter().all(|(_, is_given, _)| !is_given) {
        faults.push(format!("nothing is bound: the type {kind} takes {}.", required_field(kind)));
    }
    if let (Some(value), ResourceType::ApiEndpoint, false) = (value, kind, is_vault_reference) {
        faults.extend(endpoint_fault(value));
    }
    faults
}

/// Returns the fault of a value that is bound to an `api_endpoint`, if there is one.
fn endpoint_fault(value: &str) -> Option<String> {
    if let Some(fault) = single_line_fault(value, MAX_VALUE_BYTES) {
        return Some(format!("the value {fault}."));
    }
    // The parser silently corrects an incomplete URL, such as `https:host`. The Job would then show another URL than the one that is
    // called.
    let is_complete = (value.starts_with("http://") || value.starts_with("https://"))
        && !value.contains(|c: char| c.is_whitespace() || c == '\\');
    let url = if is_complete { Url::parse(value).ok() } else { None };
    let Some(url) = url else {
        return Some("the value is not an http or https URL, such as https://api.example.com/v1.".to_owned());
    };
    if !url.username().is_empty() || url.password().is_some() || has_user_info(value) {
        return Some(
            "the URL contains a user or a password, which everybody can read: declare a credential, and bind a secretKeyRef."
                .to_owned(),
        );
    }
    authority(value).is_empty().then(|| "the URL has no host.".to_owned())
}

/// Returns whether a URL contains a user or a password.
pub fn has_user_info(url: &str) -> bool {
    authority(url).contains('@')
}

fn authority(url: &str) -> &str {
    url.split_once("://").map_or("", |(_, rest)| rest.split(['/', '?', '#']).next().unwrap_or_default())
}

#[cfg(test)]
mod tests;
