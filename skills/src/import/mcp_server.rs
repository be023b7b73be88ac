//! The MCP server as a URI (seed 000). A Skill reaches a Service of its namespace or a container that the operator runs,
//! and no other address.

use crate::finding::{Finding, quoted};
use crate::schema::patterns::matches;
use crate::tree::{Entry, Node, Value};
use url::Url;

/// Converts a URI to an `mcpServer`: a Service of the namespace, if the host is the name of one. Any other URI is reported
/// and left out.
pub(super) fn from_uri(node: &Node, uri: &str, namespace: Option<&str>, findings: &mut Vec<Finding>) -> Value {
    let Ok(url) = Url::parse(uri) else {
        let finding = Finding::error(&node.place, format!("is no URI: {}", quoted(uri)));
        findings.push(finding.hint(instead("NAME", 8080, "/mcp")));
        return Value::Null;
    };
    match service(&url, namespace) {
        Ok((name, port, path)) => {
            let message = format!("is read as the Service {name:?} of the Skill's namespace, port {port}, path {path}");
            findings.push(Finding::warning(&node.place, message));
            let field = |name: &str, value| entry(name, node, value);
            let service = vec![
                field("name", Value::Text { text: name, plain: false }),
                field("port", Value::Number(port.into())),
                field("path", Value::Text { text: path, plain: false }),
            ];
            Value::Map(vec![field("service", Value::Map(service))])
        }
        Err(Unkept { why, instead }) => {
            let message = format!("is not kept, and the Skill has no tools of its own without it: {why}");
            findings.push(Finding::warning(&node.place, message).hint(instead));
            Value::Null
        }
    }
}

/// Takes the address of the MCP server out of a document's fields. A value that is no address stays.
pub(super) fn take_address(fields: Vec<Entry>) -> (Option<String>, Vec<Entry>) {
    let is_server = |entry: &Entry| matches!(entry.name.as_str(), "mcp_server" | "mcpServer");
    let (addresses, fields): (Vec<Entry>, Vec<Entry>) =
        fields.into_iter().partition(|entry| is_server(entry) && entry.node.text().is_some());
    (addresses.first().and_then(|entry| entry.node.text()).map(str::to_owned), fields)
}

/// The reason why an address is not kept, and what to write instead.
struct Unkept {
    why: String,
    instead: String,
}

fn service(url: &Url, namespace: Option<&str>) -> Result<(String, u16, String), Unkept> {
    let host = url.host_str().unwrap_or_default();
    let port = url.port_or_known_default().unwrap_or(8080);
    let path = if url.path().starts_with('/') { url.path() } else { "/mcp" };
    let unkept = |why: String| Err(Unkept { why, instead: instead("NAME", port, path) });
    if !matches!(url.scheme(), "http" | "https") || host.is_empty() {
        return unkept(format!("{} is no address that an MCP server is reached at", quoted(url.as_str())));
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return unkept(
            "it holds a user, a password, a query or a fragment, which a Service has no place for".to_owned(),
        );
    }
    if url.host().is_some_and(|host| !matches!(host, url::Host::Domain(_))) || host == "localhost" {
        return unkept(format!("in a cluster {} is not the machine that is meant", quoted(host)));
    }
    let Some((name, of)) = in_cluster(host).filter(|_| url.scheme() == "http") else {
        return unkept(format!("{} is no Service of the Skill's namespace", quoted(url.as_str())));
    };
    match (of, namespace) {
        (Some(of), Some(own)) if of != own => {
            unkept(format!("it is a Service of the namespace {of:?}, and a Skill reaches only those of its own"))
        }
        (Some(of), None) => Err(Unkept {
            why: format!("it is a Service of the namespace {of:?}, and that of the Skill is not known"),
            instead: format!("give --namespace {of} to `bloomery import`, or {}", instead(name, port, path)),
        }),
        _ => Ok((name.to_owned(), port, path.to_owned())),
    }
}

/// Returns the Service that a host names within a cluster, and its namespace if the host has one.
fn in_cluster(host: &str) -> Option<(&str, Option<&str>)> {
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

/// Returns what to write instead of an address: the field as the document should have it.
fn instead(name: &str, port: u16, path: &str) -> String {
    format!(
        "write mcp_server: {{service: {{name: {name}, port: {port}, path: {path}}}}} for a Service of the Skill's \
         namespace, or mcp_server: {{container: {{image: IMAGE, port: {port}, path: {path}}}}} for a server that the \
         operator runs"
    )
}

fn entry(name: &str, node: &Node, value: Value) -> Entry {
    Entry { name: name.to_owned(), place: node.place.clone(), node: Node { place: node.place.clone(), value } }
}
