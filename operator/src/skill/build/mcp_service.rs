//! Builds the Service of the MCP server of a Skill.

use super::super::validate::ValidSkill;
use super::mcp_deployment::selector;
use super::metadata::{PORT_NAME, metadata};
use bloomery_crds::names;
use bloomery_crds::v1alpha1::McpContainer;
use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Builds the Service, which has the same port number as the server. Its requests go to the bridge, if one stands before the server.
pub fn build_mcp_service(skill: &ValidSkill, container: &McpContainer) -> Service {
    Service {
        metadata: metadata(skill, names::mcp_server(&skill.name), "mcp"),
        spec: Some(ServiceSpec {
            selector: Some(selector(skill)),
            // A session of MCP is known to one pod only.
            session_affinity: Some("ClientIP".to_owned()),
            ports: Some(vec![ServicePort {
                name: Some(PORT_NAME.to_owned()),
                port: container.port.into(),
                target_port: Some(IntOrString::String(PORT_NAME.to_owned())),
                protocol: Some("TCP".to_owned()),
                app_protocol: Some("http".to_owned()),
                ..ServicePort::default()
            }]),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::validate::ValidMcp;
    use super::super::metadata::yaml;
    use super::*;
    use crate::skill::{fixtures, validate::validate};

    #[test]
    fn the_service_has_the_port_of_the_server() {
        let skill = validate(&fixtures::with_container()).unwrap();
        let Some(ValidMcp::Container(container)) = skill.mcp.clone() else { panic!() };
        insta::assert_snapshot!("mcp_service", yaml(&build_mcp_service(&skill, &container)));
    }
}
