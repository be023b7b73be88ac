//! Builds the Deployment of the MCP server of a Skill.

use super::super::validate::{InvalidSkill, ValidSkill};
use super::jwks;
use super::metadata::{PORT_NAME, metadata};
use crate::mcp_container::{bridge, resources};
use crate::settings::{PodDefaults, Settings, WorkerSettings};
use bloomery_crds::v1alpha1::{McpContainer, McpHealth};
use bloomery_crds::{names, pod};
use bloomery_token::PublicKey;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment};
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EmptyDirVolumeSource, HTTPGetAction, PodSpec, PodTemplateSpec, Probe,
    ResourceRequirements, TCPSocketAction, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use std::collections::BTreeMap;

/// The seconds that a server may take to listen before it is restarted.
pub const STARTUP_SECONDS: i32 = 120;

/// The seconds without progress after which a rollout counts as failed: one failed start, and a margin.
const PROGRESS_SECONDS: i32 = STARTUP_SECONDS + 30;

/// The labels that select the server's pods.
pub fn selector(skill: &ValidSkill) -> BTreeMap<String, String> {
    BTreeMap::from([
        (names::LABEL_SKILL.to_owned(), skill.name.clone()),
        (names::LABEL_COMPONENT.to_owned(), "mcp".to_owned()),
    ])
}

/// Builds the Deployment. Its pods pass the `restricted` Pod Security Standard.
///
/// The server runs as the user of its image, because the image decides who owns its files. This user must not be root. `keys` are those
/// of the tokens that workers send.
pub fn build_mcp_deployment(
    skill: &ValidSkill,
    container: &McpContainer,
    settings: &Settings,
    keys: &[PublicKey],
) -> Result<Deployment, InvalidSkill> {
    let resources = resources::resolve(container.resources.as_ref(), &settings.mcp).map_err(InvalidSkill::new)?;
    let metadata = metadata(skill, names::mcp_server(&skill.name), "mcp");
    let mut pod_metadata = ObjectMeta { labels: metadata.labels.clone(), ..ObjectMeta::default() };
    let pod = settings.mcp.pod.with_skill(skill.spec.pods.as_ref().and_then(|pods| pods.mcp.as_ref()));
    if verifies_itself(container) {
        jwks::annotate(&mut pod_metadata, keys);
    }
    pod.label(&mut pod_metadata);
    Ok(Deployment {
        metadata,
        spec: Some(DeploymentSpec {
            revision_history_limit: Some(2),
            progress_deadline_seconds: Some(PROGRESS_SECONDS),
            selector: LabelSelector { match_labels: Some(selector(skill)), ..LabelSelector::default() },
            // The new pod listens before the old one is stopped: running Jobs keep their tools.
            strategy: Some(DeploymentStrategy {
                type_: Some("RollingUpdate".to_owned()),
                rolling_update: Some(RollingUpdateDeployment {
                    max_surge: Some(IntOrString::Int(1)),
                    max_unavailable: Some(IntOrString::Int(0)),
                }),
            }),
            template: PodTemplateSpec {
                metadata: Some(pod_metadata),
                spec: Some(pod_spec(skill, container, resources, (&settings.worker, &pod), keys)),
            },
            ..DeploymentSpec::default()
        }),
        ..Deployment::default()
    })
}

fn pod_spec(
    skill: &ValidSkill,
    container: &McpContainer,
    resources: ResourceRequirements,
    (worker, pod): (&WorkerSettings, &PodDefaults),
    keys: &[PublicKey],
) -> PodSpec {
    let scratch = Volume {
        name: "tmp".to_owned(),
        empty_dir: Some(EmptyDirVolumeSource {
            size_limit: Some(Quantity("256Mi".to_owned())),
            ..EmptyDirVolumeSource::default()
        }),
        ..Volume::default()
    };
    let is_stdio = container.is_stdio();
    let guard = container.is_fronted().then(|| bridge::guard(container, worker, token_access(skill, keys)));
    let volumes = [scratch].into_iter().chain(is_stdio.then(bridge::volume));
    let volumes = volumes.chain(verifies_itself(container).then(jwks::volume));
    let mut spec = PodSpec {
        service_account_name: Some(names::mcp_server(&skill.name)),
        automount_service_account_token: Some(false),
        enable_service_links: Some(false),
        security_context: Some(pod::restricted()),
        containers: [server_container(skill, container, resources, keys)].into_iter().chain(guard).collect(),
        volumes: Some(volumes.collect()),
        init_containers: is_stdio.then(|| vec![bridge::init_container(worker)]),
        // The bridge is the first process of its container, and does not collect the processes that servers leave behind.
        share_process_namespace: is_stdio.then_some(true),
        ..PodSpec::default()
    };
    pod.apply_to(&mut spec);
    spec
}

/// Returns whether no bridge stands before the server: it speaks HTTP, and verifies tokens itself if at all.
fn verifies_itself(container: &McpContainer) -> bool {
    !container.is_stdio() && !container.is_fronted()
}

fn token_access(skill: &ValidSkill, keys: &[PublicKey]) -> Vec<String> {
    bridge::token_access(&skill.namespace, &skill.name, keys)
}

fn server_container(
    skill: &ValidSkill,
    container: &McpContainer,
    resources: ResourceRequirements,
    keys: &[PublicKey],
) -> Container {
    let list = |items: &Vec<String>| (!items.is_empty()).then(|| items.clone());
    let (command, args) = if container.is_stdio() {
        (Some(bridge::command(container, bridge::ALL_ADDRESSES, token_access(skill, keys))), None)
    } else {
        (list(&container.command), list(&container.args))
    };
    let scratch = VolumeMount { name: "tmp".to_owned(), mount_path: "/tmp".to_owned(), ..VolumeMount::default() };
    let mounts = [scratch].into_iter().chain(container.is_stdio().then(bridge::mount));
    let mounts = mounts.chain(verifies_itself(container).then(jwks::mount));
    let mut env = container.env.clone();
    if verifies_itself(container) {
        jwks::add_variable(&mut env);
    }
    let port = ContainerPort {
        name: Some(PORT_NAME.to_owned()),
        container_port: container.port.into(),
        protocol: Some("TCP".to_owned()),
        ..ContainerPort::default()
    };
    Container {
        name: PORT_NAME.to_owned(),
        image: Some(container.image.clone()),
        command,
        args,
        env: Some(env).filter(|env| !env.is_empty()),
        // The port of the Service is that of the bridge, if one stands before the server.
        ports: (!container.is_fronted()).then(|| vec![port]),
        resources: Some(resources),
        security_context: Some(pod::restricted_container()),
        startup_probe: Some(probe(container, 1, STARTUP_SECONDS)),
        readiness_probe: Some(probe(container, 5, 3)),
        // A server that is only busy must not be restarted.
        liveness_probe: Some(Probe { timeout_seconds: Some(5), ..probe(container, 20, 6) }),
        volume_mounts: Some(mounts.collect()),
        ..Container::default()
    }
}

/// Builds a probe: as the Skill says, or else a connection to the port. Neither begins a session of MCP.
fn probe(container: &McpContainer, period_seconds: i32, failure_threshold: i32) -> Probe {
    let times =
        |probe| Probe { period_seconds: Some(period_seconds), failure_threshold: Some(failure_threshold), ..probe };
    if container.is_fronted() {
        return times(bridge::guarded_probe(container));
    }
    let mut probe = times(Probe::default());
    let port = IntOrString::String(PORT_NAME.to_owned());
    match &container.health {
        Some(McpHealth { path, port: own }) => {
            let port = own.map_or(port, |own| IntOrString::Int(own.into()));
            probe.http_get = Some(HTTPGetAction { path: Some(path.clone()), port, ..HTTPGetAction::default() });
        }
        None => probe.tcp_socket = Some(TCPSocketAction { port, ..TCPSocketAction::default() }),
    }
    probe
}

#[cfg(test)]
mod tests {
    use super::super::super::validate::ValidMcp;
    use super::super::metadata::yaml;
    use super::*;
    use crate::skill::{fixtures, validate::validate};
    use clap::Parser;
    use serde_json::{Value, json};

    fn settings(more: &[&str]) -> Settings {
        let needed = ["operator", "--pod-name=op-0", "--pod-namespace=bloomery", "--worker-image=worker:1"];
        Settings::try_parse_from(needed.iter().chain(more)).unwrap()
    }

    fn keys() -> [PublicKey; 2] {
        let tokens = crate::server_tokens::ServerTokens::default();
        tokens.set_keys(crate::server_tokens::test_keys());
        tokens.public_keys().unwrap()
    }

    fn built(container: Value) -> Deployment {
        let skill = validate(&fixtures::with_container()).unwrap();
        build_mcp_deployment(&skill, &serde_json::from_value(container).unwrap(), &settings(&[]), &keys()).unwrap()
    }

    #[test]
    fn the_deployment_of_a_skill_with_all_fields() {
        let mut skill = fixtures::with_container();
        let pods = json!({"mcp": {
            "imagePullSecrets": [{"name": "team"}], "nodeSelector": {"disk": "hdd", "gpu": "a100"},
            "tolerations": [{"key": "gpu", "operator": "Exists"}], "runtimeClassName": "gvisor",
            "priorityClassName": "high", "hostUsers": false, "labels": {"team": "b", "tier": "web"},
            "annotations": {"backup": "daily"},
        }});
        let may_set: Vec<String> = pods["mcp"].as_object().unwrap().keys().cloned().collect();
        skill.spec.pods = serde_json::from_value(pods).unwrap();
        let skill = validate(&skill).unwrap();
        let Some(ValidMcp::Container(container)) = skill.mcp.clone() else { panic!() };
        let defaults = json!({
            "imagePullSecrets": [{"name": "pull"}], "nodeSelector": {"disk": "ssd"}, "podLabels": {"team": "a"},
            "skillMaySet": may_set,
        });
        let settings = settings(&[format!("--mcp-pod={defaults}").as_str()]);
        let deployment = build_mcp_deployment(&skill, &container, &settings, &keys()).unwrap();
        insta::assert_snapshot!("mcp_deployment", yaml(&deployment));
    }

    #[test]
    fn the_deployment_of_a_skill_with_defaults() {
        insta::assert_snapshot!("mcp_deployment_least", yaml(&built(json!({"image": "localhost/orders:4"}))));
    }

    #[test]
    fn the_deployment_of_a_stdio_server_starts_it_with_the_bridge() {
        let container = json!({
            "image": "localhost/files:5", "transport": "stdio", "command": ["node", "/app/index.js"], "args": ["/data"],
        });
        insta::assert_snapshot!("mcp_deployment_stdio", yaml(&built(container)));
    }

    #[test]
    fn the_deployment_of_a_protected_server_has_a_bridge_before_it() {
        let health = json!({"path": "/healthz", "port": 9080});
        let container = json!({"image": "localhost/orders:4", "port": 8070, "protect": true, "health": health});
        insta::assert_snapshot!("mcp_deployment_protected", yaml(&built(container)));
    }

    #[test]
    fn a_variable_of_the_author_wins() {
        let env = json!([{"name": "BLOOMERY_JWKS_FILE", "value": "/own.json"}]);
        let spec = built(json!({"image": "localhost/orders:4", "env": env})).spec.unwrap().template.spec.unwrap();
        let set = spec.containers[0].env.clone().unwrap();
        assert_eq!(set.iter().map(|variable| variable.value.as_deref()).collect::<Vec<_>>(), [Some("/own.json")]);
    }
}
