//! The MCP server as a URI (seed 000). A Skill reaches a Service of its namespace, or a container that the operator
//! runs; no other address.

use super::finding::Finding;
use super::node::{Entry, Node, Value};
use super::patterns::takes;
use super::schema::quoted;
use url::Url;

/// What to write where a URI cannot be kept.
const INSTEAD: &str = "write mcp_server as a map: service {name, port, path} for a Service of the Skill's namespace, \
                       or container {image, port, path} for a server that the operator runs";

/// The `mcpServer` that a URI means: a Service of the namespace, where its host is a bare name. Any other URI is
/// named and left out.
pub(super) fn from_uri(node: &Node, uri: &str, findings: &mut Vec<Finding>) -> Value {
    let Ok(url) = Url::parse(uri) else {
        findings.push(Finding::error(&node.place, format!("is no URI: {}", quoted(uri))).hint(INSTEAD));
        return Value::Null;
    };
    match service(&url) {
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
        Err(why) => {
            let message = format!("is not kept, and the Skill has no tools of its own without it: {why}");
            findings.push(Finding::warning(&node.place, message).hint(INSTEAD));
            Value::Null
        }
    }
}

fn service(url: &Url) -> Result<(String, u16, String), String> {
    let host = url.host_str().unwrap_or_default();
    if !matches!(url.scheme(), "http" | "https") || host.is_empty() {
        return Err(format!("{} is no address that an MCP server is reached at", quoted(url.as_str())));
    }
    if !url.username().is_empty() || url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
        return Err("it holds a user, a password, a query or a fragment, which a Service has no place for".to_owned());
    }
    if url.host().is_some_and(|host| !matches!(host, url::Host::Domain(_))) || host == "localhost" {
        return Err(format!("in a cluster {} is not the machine that is meant", quoted(host)));
    }
    if url.scheme() == "https" || takes("^[a-z]([-a-z0-9]*[a-z0-9])?$", host) != Some(true) || host.len() > 63 {
        return Err(format!("{} is no Service of the Skill's namespace", quoted(url.as_str())));
    }
    Ok((host.to_owned(), url.port_or_known_default().unwrap_or(80), url.path().to_owned()))
}

fn entry(name: &str, node: &Node, value: Value) -> Entry {
    Entry { name: name.to_owned(), place: node.place.clone(), node: Node { place: node.place.clone(), value } }
}
