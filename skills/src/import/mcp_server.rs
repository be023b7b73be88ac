//! Converts the MCP server of the dialect, which is a URI. A `Skill` can use a Service of its namespace, a container that the
//! operator runs, or an https URL outside of the cluster.

use super::suggestions;
use crate::finding::{Finding, quoted};
use crate::schema::patterns::matches;
use crate::tree::{Entry, Node, Value};
use url::Url;

/// Annotation of a Skill whose MCP server is not imported: the reason. Comments do not reach the cluster, and the lint does not read
/// them.
pub(crate) const ANNOTATION_UNIMPORTED: &str = "bloomery.dev/unimported-mcp-server";

/// The server at a URI that an `mcpServer` can express.
enum Server {
    Service { name: String, port: u16, path: String },
    Outside { uri: String },
}

/// Converts a URI to an `mcpServer`, if its host is the name of a Service of the namespace, or it is an https URL outside of the
/// cluster. Any other URI is reported and removed.
pub(super) fn from_uri(node: &Node, uri: &str, namespace: Option<&str>, findings: &mut Vec<Finding>) -> Value {
    let Ok(url) = Url::parse(uri) else {
        let finding = Finding::error(&node.place, format!("is not a URI: {}", quoted(uri)));
        let unknown = Rejection::new(String::new(), 8080, "/mcp");
        findings.push(finding.hint(unknown.hint()));
        return Value::Null;
    };
    let field = |name: &str, value| Entry::at(name, &node.place, value);
    match to_server(&url, namespace) {
        Ok(Server::Outside { uri }) => {
            let message = format!("is read as the server {uri} outside of the cluster");
            let hint = "its address must be public, or in the chart's worker.endpointRanges. Credentials belong in headers, whose \
                        values are in Secrets";
            findings.push(Finding::warning(&node.place, message).hint(hint));
            Value::Map(vec![field("uri", Value::text(uri))])
        }
        Ok(Server::Service { name, port, path }) => {
            let message = format!("is read as the Service {name:?} of the Skill's namespace, port {port}, path {path}");
            findings.push(Finding::warning(&node.place, message));
            let service = vec![
                field("name", Value::text(name)),
                field("port", Value::Number(port.into())),
                field("path", Value::text(path)),
            ];
            Value::Map(vec![field("service", Value::Map(service))])
        }
        Err(rejection) => {
            let message = format!("is not imported, so the Skill runs without its tools: {}", rejection.reason);
            findings.push(Finding::warning(&node.place, message).hint(rejection.hint()));
            Value::Null
        }
    }
}

/// The reason why an import leaves a server out, and the suggestions for its author.
pub(super) struct Unimported {
    /// The reason, as a clause.
    pub(super) reason: String,
    /// Comments with the fields to choose from.
    pub(super) suggestion: String,
}

/// Returns the reason and the suggestions if [`from_uri`] leaves out the server of a document.
pub(super) fn unimported(source: &Node, namespace: Option<&str>) -> Option<Unimported> {
    let uri = ["mcp_server", "mcpServer"].into_iter().find_map(|name| source.get(name)?.text())?;
    let url = Url::parse(uri).ok()?;
    let rejection = to_server(&url, namespace).err()?;
    let fields = rejection.fields().into_iter().map(|(value, kind)| format!("mcpServer: {value} # {kind}"));
    let suggestion = suggestions::of_server(&rejection.reason, &fields.collect::<Vec<_>>());
    Some(Unimported { reason: rejection.reason, suggestion })
}

/// Returns the warning about the manifest of a Skill whose server was not imported, and that has no other one.
pub(crate) fn unimported_warning(manifest: &Node, spec: &Node) -> Option<Finding> {
    let annotation = manifest.get("metadata")?.get("annotations")?.get(ANNOTATION_UNIMPORTED)?;
    if spec.get("mcpServer").is_some_and(|server| server.value != Value::Null) {
        return None;
    }
    let reason = annotation.text().unwrap_or_default();
    let message = format!("the MCP server was not imported, so the Skill runs without its tools: {reason}");
    let hint = "declare a service, a container or a uri in spec.mcpServer, or remove the annotation";
    Some(Finding::warning(&annotation.place, message).hint(hint))
}

/// Removes the address of the MCP server from a document's fields and returns it. A value that is not a text stays.
pub(super) fn take_address(fields: Vec<Entry>) -> (Option<String>, Vec<Entry>) {
    let is_server = |entry: &Entry| matches!(entry.name.as_str(), "mcp_server" | "mcpServer");
    let (addresses, fields): (Vec<Entry>, Vec<Entry>) =
        fields.into_iter().partition(|entry| is_server(entry) && entry.node.text().is_some());
    (addresses.first().and_then(|entry| entry.node.text()).map(str::to_owned), fields)
}

/// The reason why an address is not imported, and what is known for the field to write instead.
struct Rejection<'a> {
    reason: String,
    /// The name of the Service, or a placeholder.
    service: &'a str,
    port: u16,
    path: &'a str,
    /// The namespace of the Service, if the namespace of the Skill is unknown.
    namespace: Option<&'a str>,
    /// The https URL of a server that may be outside of the cluster, without credentials.
    outside: Option<String>,
}

impl<'a> Rejection<'a> {
    fn new(reason: String, port: u16, path: &'a str) -> Self {
        Self { reason, service: "NAME", port, path, namespace: None, outside: None }
    }

    /// Returns the values that `mcpServer` can have, each with the kind of server that it is for.
    fn fields(&self) -> Vec<(String, &'static str)> {
        let Self { service, port, path, outside, .. } = self;
        let mut fields = vec![
            (
                format!("{{service: {{name: {service}, port: {port}, path: {path}}}}}"),
                "a Service of the Skill's namespace",
            ),
            (format!("{{container: {{image: IMAGE, port: {port}, path: {path}}}}}"), "a server that the operator runs"),
        ];
        fields.extend(outside.iter().map(|uri| (format!("{{uri: {uri:?}}}"), "a server outside of the cluster")));
        fields
    }

    /// Returns the remedy: what to write instead of the address.
    fn hint(&self) -> String {
        let fields = self.fields().into_iter().map(|(value, kind)| format!("mcp_server: {value} for {kind}"));
        let write = format!("write {}", fields.collect::<Vec<_>>().join(", or "));
        match &self.namespace {
            Some(namespace) => format!("give --namespace {namespace} to `bloomery import`, or {write}"),
            None => write,
        }
    }
}

/// Returns the server at a URL: a Service of the namespace, or a server outside of the cluster.
fn to_server<'a>(url: &'a Url, namespace: Option<&str>) -> Result<Server, Rejection<'a>> {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(8080);
    let path = if url.path().starts_with('/') { url.path() } else { "/mcp" };
    let is_name = matches!(url.host(), Some(url::Host::Domain(_))) && host != "localhost";
    let service = service_of_host(host);
    let outside = (is_name && service.is_none()).then(|| {
        let port = url.port().map(|port| format!(":{port}")).unwrap_or_default();
        format!("https://{host}{port}{path}")
    });
    let reject = |reason: String| Err(Rejection { outside: outside.clone(), ..Rejection::new(reason, port, path) });
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return reject(
            "it contains a user, a password, a query or a fragment, which mcpServer cannot express".to_owned(),
        );
    }
    if !matches!(url.scheme(), "http" | "https") || host.is_empty() {
        return reject(format!("{} is not an http or https URL", quoted(url.as_str())));
    }
    if !is_name {
        return reject(format!("{} is not reachable from a cluster", quoted(host)));
    }
    if url.scheme() == "https"
        && let Some(uri) = &outside
    {
        return Ok(Server::Outside { uri: uri.clone() });
    }
    let Some((name, host_namespace)) = service.filter(|_| url.scheme() == "http") else {
        return reject(format!("{} is not a Service of the Skill's namespace", quoted(url.as_str())));
    };
    match (host_namespace, namespace) {
        (Some(host_namespace), Some(own)) if host_namespace != own => reject(format!(
            "it is a Service of the namespace {host_namespace:?}, and a Skill can only use Services of its own namespace"
        )),
        (Some(host_namespace), None) => Err(Rejection {
            service: name,
            namespace: Some(host_namespace),
            ..Rejection::new(
                format!(
                    "it is a Service of the namespace {host_namespace:?}, and the namespace of the Skill is unknown"
                ),
                port,
                path,
            )
        }),
        _ => Ok(Server::Service { name: name.to_owned(), port, path: path.to_owned() }),
    }
}

/// Returns the Service of a host name within the cluster, and its namespace if the host name contains one.
fn service_of_host(host: &str) -> Option<(&str, Option<&str>)> {
    let is_label = |text: &str| text.len() <= 63 && matches("^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", text) == Some(true);
    let host = host.strip_suffix(".cluster.local").unwrap_or(host);
    let (name, namespace) = match host.split('.').collect::<Vec<_>>().as_slice() {
        [name] => (*name, None),
        [name, namespace, "svc"] => (*name, Some(*namespace)),
        _ => return None,
    };
    let is_service = is_label(name) && name.starts_with(|c: char| c.is_ascii_lowercase());
    (is_service && namespace.is_none_or(is_label)).then_some((name, namespace))
}
