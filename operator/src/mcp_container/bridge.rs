//! Builds the parts of a pod in which the bridge stands before the MCP server, and verifies the tokens of workers.
//!
//! - A stdio server is started by the bridge. The image of the server is its author's, and has only the server. So an init container
//!   copies the bridge, a static program, from the worker's image into a volume.
//! - A server that speaks HTTP is started as its image says. The bridge is a container of its own, and passes requests on.

use crate::settings::WorkerSettings;
use bloomery_crds::pod::{self, MCP_CONTAINER};
use bloomery_crds::sidecar::BLOOMERY_DIR;
use bloomery_crds::v1alpha1::McpContainer;
use bloomery_token::{PublicKey, audience};
use k8s_openapi::api::core::v1::{
    Container, ContainerPort, EmptyDirVolumeSource, HTTPGetAction, Probe, ResourceRequirements, Volume, VolumeMount,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// The name of the container, of the init container and of the volume.
const NAME: &str = "bridge";

/// The program in the worker's image.
const INSTALLED: &str = "/usr/local/bin/bloomery-bridge";

/// The path at which the bridge before a server that speaks HTTP shows the server's health, without a token.
const HEALTH_PATH: &str = "/.bloomery/health";

/// The ports on which the bridge before a server that speaks HTTP may listen. The server has at most two ports.
const PORTS: [u16; 3] = [9080, 9081, 9082];

/// The directory of the copied program. It is not one that an image has.
const DIR: &str = BLOOMERY_DIR;

/// The address of a bridge that others than the worker of its pod connect to: all addresses of IPv6 and IPv4.
pub const ALL_ADDRESSES: &str = "[::]";

/// Returns the path of the copied program.
pub(super) fn program() -> String {
    format!("{DIR}/bloomery-bridge")
}

/// Builds the volume of the copied program.
pub fn volume() -> Volume {
    Volume {
        name: NAME.to_owned(),
        empty_dir: Some(EmptyDirVolumeSource {
            size_limit: Some(Quantity("64Mi".to_owned())),
            ..EmptyDirVolumeSource::default()
        }),
        ..Volume::default()
    }
}

/// Builds the mount of the volume in the container of the server.
pub fn mount() -> VolumeMount {
    VolumeMount { name: NAME.to_owned(), mount_path: DIR.to_owned(), read_only: Some(true), ..VolumeMount::default() }
}

/// Builds the init container, which copies the program.
pub fn init_container(worker: &WorkerSettings) -> Container {
    Container {
        volume_mounts: Some(vec![VolumeMount { read_only: None, ..mount() }]),
        ..helper(NAME, vec!["install".to_owned(), program()], worker)
    }
}

/// Builds an init container that runs the bridge of the worker's image with these arguments.
pub(super) fn helper(name: &str, arguments: Vec<String>, worker: &WorkerSettings) -> Container {
    Container {
        name: name.to_owned(),
        command: Some([INSTALLED.to_owned()].into_iter().chain(arguments).collect()),
        resources: Some(resources("500m")),
        ..container_of_worker(worker)
    }
}

/// Returns the command of the container of a stdio server: the bridge, which listens at this address and serves the clients of `access`,
/// with the command line of the server.
pub fn command(container: &McpContainer, address: &str, access: Vec<String>) -> Vec<String> {
    let serve = [
        program(),
        "serve".to_owned(),
        format!("--listen={address}:{}", container.port),
        format!("--path={}", container.path),
    ];
    let server = container.command.iter().chain(&container.args).cloned();
    serve.into_iter().chain(access).chain(["--".to_owned()]).chain(server).collect()
}

/// Builds the container that stands before a server that speaks HTTP.
pub fn guard(container: &McpContainer, worker: &WorkerSettings, access: Vec<String>) -> Container {
    let health = container.health.as_ref();
    let guard = [
        INSTALLED.to_owned(),
        "guard".to_owned(),
        format!("--listen={ALL_ADDRESSES}:{}", guard_port(container)),
        format!("--path={}", container.path),
        format!("--port={}", container.port),
        format!("--probe-path={HEALTH_PATH}"),
    ];
    let health_path = health.map(|health| format!("--health-path={}", health.path));
    let health_port = health.and_then(|health| health.port).map(|port| format!("--health-port={port}"));
    Container {
        command: Some(guard.into_iter().chain(health_path).chain(health_port).chain(access).collect()),
        ports: Some(vec![ContainerPort {
            name: Some(MCP_CONTAINER.to_owned()),
            container_port: guard_port(container).into(),
            protocol: Some("TCP".to_owned()),
            ..ContainerPort::default()
        }]),
        resources: Some(resources("1")),
        ..container_of_worker(worker)
    }
}

/// Returns the probe of a server behind a bridge. The server listens on the loopback address, which the kubelet cannot reach, so the
/// bridge asks it.
pub fn guarded_probe(container: &McpContainer) -> Probe {
    let port = IntOrString::Int(guard_port(container).into());
    Probe {
        http_get: Some(HTTPGetAction { path: Some(HEALTH_PATH.to_owned()), port, ..HTTPGetAction::default() }),
        ..Probe::default()
    }
}

/// Returns the first port that the server does not use.
fn guard_port(container: &McpContainer) -> u16 {
    let health = container.health.as_ref().and_then(|health| health.port);
    let is_free = |port: &u16| *port != container.port && Some(*port) != health;
    PORTS.into_iter().find(is_free).unwrap_or_default()
}

/// Returns the arguments that name the tokens which the bridge accepts.
pub fn token_access(namespace: &str, skill: &str, keys: &[PublicKey]) -> Vec<String> {
    let audience = format!("--audience={}", audience(namespace, skill));
    let keys = keys.iter().map(|key| format!("--token-key={key}"));
    [audience].into_iter().chain(keys).collect()
}

/// Returns the argument of a bridge that serves every client.
pub fn open_access() -> Vec<String> {
    vec!["--open".to_owned()]
}

fn container_of_worker(worker: &WorkerSettings) -> Container {
    Container {
        name: NAME.to_owned(),
        image: Some(worker.image.clone()),
        image_pull_policy: Some(worker.pull_policy.to_string()),
        security_context: Some(pod::restricted_container()),
        ..Container::default()
    }
}

fn resources(cpu_limit: &str) -> ResourceRequirements {
    let quantities = |cpu: &str, memory: &str| {
        let pairs =
            [("cpu", cpu), ("memory", memory)].map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())));
        Some(pairs.into())
    };
    ResourceRequirements {
        requests: quantities("10m", "16Mi"),
        limits: quantities(cpu_limit, "64Mi"),
        ..ResourceRequirements::default()
    }
}
