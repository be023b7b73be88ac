//! Resolves the credentials of an MCP server outside of the cluster, for workers and probes: pure.

use crate::job::paths::{ca_file, key_file};
use bloomery_crds::run::{ExternalMcp, SecretHeader};
use bloomery_crds::v1alpha1::{McpHeader, McpServer};

/// Returns the files with the credentials of the server; none if it is not outside of the cluster.
pub fn resolve_external_mcp(server: Option<&McpServer>) -> Option<ExternalMcp> {
    let McpServer { uri: Some(_), headers, ca, .. } = server? else { return None };
    let headers = headers.iter().map(|McpHeader { name, scheme, secret_key_ref }| SecretHeader {
        name: name.clone(),
        scheme: scheme.clone(),
        file: key_file(secret_key_ref),
    });
    Some(ExternalMcp { headers: headers.collect(), ca: ca.as_ref().and_then(ca_file) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn resolved(server: Value) -> Option<ExternalMcp> {
        resolve_external_mcp(Some(&serde_json::from_value(server).unwrap()))
    }

    #[test]
    fn only_a_server_outside_of_the_cluster_has_credentials() {
        let external = resolved(json!({
            "uri": "https://tools.example/mcp",
            "headers": [{"name": "Authorization", "scheme": "Bearer", "secretKeyRef": {"name": "tools", "key": "token"}}],
            "ca": {"configMapKeyRef": {"name": "corporate", "key": "ca.crt"}},
        }));
        let ExternalMcp { headers, ca } = external.unwrap();
        assert_eq!(headers[0].file.path, "/etc/bloomery/secrets/tools/token");
        assert_eq!(ca.unwrap().path, "/etc/bloomery/configmaps/corporate/ca.crt");
        assert_eq!(resolved(json!({"service": {"name": "orders", "port": 80}})), None);
        assert_eq!(resolve_external_mcp(None), None);
    }
}
