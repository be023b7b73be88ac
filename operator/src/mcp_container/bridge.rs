//! Builds the parts of a pod that serve a stdio MCP server over HTTP.
//!
//! The image of the server is its author's, and has only the server. So an init container copies the bridge, a static program, from the
//! worker's image into a volume, and the container of the server starts the server with it.

use crate::settings::WorkerSettings;
use bloomery_crds::pod;
use bloomery_crds::sidecar::BLOOMERY_DIR;
use bloomery_crds::v1alpha1::McpContainer;
use k8s_openapi::api::core::v1::{Container, EmptyDirVolumeSource, ResourceRequirements, Volume, VolumeMount};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// The name of the init container and of the volume.
const NAME: &str = "bridge";

/// The directory of the copied program. It is not one that an image has.
const DIR: &str = BLOOMERY_DIR;

/// Returns the path of the copied program.
fn program() -> String {
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
    let quantities = |cpu: &str, memory: &str| {
        let pairs =
            [("cpu", cpu), ("memory", memory)].map(|(name, amount)| (name.to_owned(), Quantity(amount.to_owned())));
        Some(pairs.into())
    };
    Container {
        name: name.to_owned(),
        image: Some(worker.image.clone()),
        image_pull_policy: Some(worker.pull_policy.to_string()),
        command: Some(["/usr/local/bin/bloomery-bridge".to_owned()].into_iter().chain(arguments).collect()),
        resources: Some(ResourceRequirements {
            requests: quantities("10m", "16Mi"),
            limits: quantities("500m", "64Mi"),
            ..ResourceRequirements::default()
        }),
        security_context: Some(pod::restricted_container()),
        ..Container::default()
    }
}

/// Returns the command of the server's container: the bridge, which listens at this address, with the command line of the server.
pub fn command(container: &McpContainer, address: &str) -> Vec<String> {
    let serve = [
        program(),
        "serve".to_owned(),
        format!("--listen={address}:{}", container.port),
        format!("--path={}", container.path),
        "--".to_owned(),
    ];
    serve.into_iter().chain(container.command.iter().cloned()).chain(container.args.iter().cloned()).collect()
}
