//! Builds the native sidecars of a worker pod: the MCP server of the Job (`mcpServer.scope: Job`), and the one that runs the scripts of
//! the Skill, which is a stdio server too.
//!
//! The server shares the network of the worker, which reaches it over the loopback interface. It shares none of the worker's volumes but
//! the file systems that the Job binds. So it sees neither the token nor the keys, the memory and the run document.
//!
//! - The kubelet starts the worker as soon as the server has started. It does not probe the server, because a probe connects to the IP
//!   of the pod, where a server on the loopback interface does not listen. The worker waits for the server itself.
//! - The server runs as the user of the worker, so that both can change the same files. The pods do not share their process namespace:
//!   otherwise, the server could read the files of the worker below `/proc`.

use super::bridge::{self, helper};
use super::resources;
use crate::settings::{McpSettings, WorkerSettings};
use crate::worker_pod::{read_only_mount, volume};
use bloomery_crds::pod::{self, MCP_CONTAINER};
use bloomery_crds::sidecar::BLOOMERY_DIR;
use bloomery_crds::v1alpha1::{Binding, McpBinding, McpContainer, PodSettings, SecretKeyRef};
use k8s_openapi::api::core::v1::{
    Container, EmptyDirVolumeSource, EnvVar, EnvVarSource, KeyToPath, LocalObjectReference, PodSpec,
    ProjectedVolumeSource, ResourceRequirements, SecretKeySelector, SecretProjection, SecurityContext, Volume,
    VolumeMount, VolumeProjection,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use std::collections::BTreeMap;

/// The name of the init container that waits for the files of secrets.
pub(super) const SECRETS_CONTAINER: &str = "secrets";

/// The address on which the bridge listens.
const LOOPBACK: &str = "127.0.0.1";

/// The name of the volume with the files of secrets.
const SECRETS: &str = "mcp-secrets";

/// The directory of the init container that waits for the files, below which each is at `<Secret>/<key>`.
fn secrets_dir() -> String {
    format!("{BLOOMERY_DIR}/secrets")
}

/// An MCP server of a worker pod.
#[derive(Debug, Clone, PartialEq)]
pub struct Sidecar {
    /// The name of its container.
    name: &'static str,
    container: McpContainer,
    resources: ResourceRequirements,
    image_pull_secrets: Vec<LocalObjectReference>,
    env: Vec<EnvVar>,
    files: Vec<SecretFile>,
    /// A volume of its own, and the path at which the server reads it.
    own_volume: Option<(Volume, String)>,
}

/// A file of the server with a secret value.
#[derive(Debug, Clone, PartialEq, Eq)]
struct SecretFile {
    path: String,
    key: SecretKeyRef,
}

impl SecretFile {
    /// The path in the volume. It names the key, so that the operator can say which key is missing.
    fn volume_path(&self) -> String {
        format!("{}/{}", self.key.name, self.key.key)
    }
}

impl Sidecar {
    /// Returns the server without secrets. `own` are the settings that the Skill makes for pods of its server, of which the pull secrets
    /// count.
    ///
    /// # Errors
    /// Returns a sentence for each resource that the installation does not allow.
    pub fn new(
        container: &McpContainer,
        own: Option<&PodSettings>,
        settings: &McpSettings,
    ) -> Result<Self, Vec<String>> {
        Ok(Self {
            name: MCP_CONTAINER,
            resources: resources::resolve(container.resources.as_ref(), settings)?,
            image_pull_secrets: settings.pod.with_skill(own).image_pull_secrets,
            env: container.env.clone(),
            files: Vec::new(),
            own_volume: None,
            container: container.clone(),
        })
    }

    /// Names the container, and adds a volume that the server reads at this path.
    #[must_use]
    pub(super) fn named(self, name: &'static str, volume: Volume, path: &str) -> Self {
        Self { name, own_volume: Some((volume, path.to_owned())), ..self }
    }

    /// Adds the secrets that a Job binds, by reference.
    #[must_use]
    pub fn with_secrets(mut self, bound: &BTreeMap<String, Binding>) -> Self {
        for McpBinding { resource, env, path, probe_value: _ } in &self.container.bindings {
            let Some(key) = bound.get(resource).and_then(|binding| binding.secret_key_ref.clone()) else { continue };
            if let Some(path) = path {
                self.files.push(SecretFile { path: path.clone(), key: key.clone() });
            }
            if let Some(name) = env {
                let selector = SecretKeySelector { name: key.name, key: key.key, optional: None };
                let source = EnvVarSource { secret_key_ref: Some(selector), ..EnvVarSource::default() };
                self.env.push(EnvVar { name: name.clone(), value_from: Some(source), value: None });
            }
        }
        self
    }

    /// Adds the values for a probe, which has no Job and so no secrets.
    #[must_use]
    pub fn with_probe_values(mut self) -> Self {
        let bindings = self.container.bindings.iter();
        let values = bindings.filter_map(|binding| Some((binding.env.clone()?, binding.probe_value.clone()?)));
        self.env.extend(values.map(|(name, value)| EnvVar { name, value: Some(value), value_from: None }));
        self
    }

    /// Adds the server to a pod of the worker's image. `mounts` are those of the file systems, whose volumes the pod has.
    pub fn add_to(&self, spec: &mut PodSpec, worker: &WorkerSettings, mounts: Vec<VolumeMount>) {
        let volumes = spec.volumes.get_or_insert_default();
        // Two stdio servers share the copied bridge.
        let needs_bridge = self.container.is_stdio() && !volumes.contains(&bridge::volume());
        volumes.push(self.scratch());
        volumes.extend(needs_bridge.then(bridge::volume));
        volumes.extend(self.secrets_volume());
        volumes.extend(self.own_volume.iter().map(|(volume, _)| volume.clone()));
        let containers = spec.init_containers.get_or_insert_default();
        containers.extend(needs_bridge.then(|| bridge::init_container(worker)));
        containers.extend(self.await_secrets(worker));
        containers.push(self.container(mounts));
        if !self.image_pull_secrets.is_empty() {
            let known = spec.image_pull_secrets.get_or_insert_default();
            let more = self.image_pull_secrets.iter().filter(|secret| !known.contains(secret)).cloned();
            let more: Vec<LocalObjectReference> = more.collect();
            known.extend(more);
        }
    }

    fn container(&self, mounts: Vec<VolumeMount>) -> Container {
        let Self { name, container, resources, env, files, own_volume, .. } = self;
        let list = |items: &Vec<String>| (!items.is_empty()).then(|| items.clone());
        let (command, args) = if container.is_stdio() {
            (Some(bridge::command(container, LOOPBACK, bridge::open_access())), None)
        } else {
            (list(&container.command), list(&container.args))
        };
        let tmp = VolumeMount { name: self.scratch().name, mount_path: "/tmp".to_owned(), ..VolumeMount::default() };
        let files = files
            .iter()
            .map(|file| VolumeMount { sub_path: Some(file.volume_path()), ..read_only_mount(SECRETS, &file.path) });
        let own_volume = own_volume.iter().map(|(volume, path)| read_only_mount(&volume.name, path));
        let own = [tmp].into_iter().chain(container.is_stdio().then(bridge::mount)).chain(files).chain(own_volume);
        Container {
            name: (*name).to_owned(),
            image: Some(container.image.clone()),
            command,
            args,
            env: (!env.is_empty()).then(|| env.clone()),
            resources: Some(resources.clone()),
            // A native sidecar: the kubelet restarts it, and stops it after the worker has ended.
            restart_policy: Some("Always".to_owned()),
            security_context: Some(SecurityContext { run_as_non_root: Some(true), ..pod::restricted_container() }),
            volume_mounts: Some(own.chain(mounts).collect()),
            ..Container::default()
        }
    }

    /// The volume for temporary files.
    fn scratch(&self) -> Volume {
        let size_limit = Some(Quantity("256Mi".to_owned()));
        let source = EmptyDirVolumeSource { size_limit, ..EmptyDirVolumeSource::default() };
        Volume { empty_dir: Some(source), ..volume(&format!("{}-tmp", self.name)) }
    }

    /// The volume with the files of secrets. Optional: the kubelet says nowhere in a pod that a Secret which it has to mount is missing.
    fn secrets_volume(&self) -> Option<Volume> {
        if self.files.is_empty() {
            return None;
        }
        let mut by_secret: BTreeMap<&str, BTreeMap<&str, String>> = BTreeMap::new();
        for file in &self.files {
            by_secret.entry(&file.key.name).or_default().insert(&file.key.key, file.volume_path());
        }
        let sources = by_secret.into_iter().map(|(secret, keys)| {
            let items = keys.into_iter().map(|(key, path)| KeyToPath { key: key.to_owned(), path, mode: None });
            let secret =
                SecretProjection { name: secret.to_owned(), items: Some(items.collect()), optional: Some(true) };
            VolumeProjection { secret: Some(secret), ..VolumeProjection::default() }
        });
        let projected = ProjectedVolumeSource { sources: Some(sources.collect()), ..ProjectedVolumeSource::default() };
        Some(Volume { projected: Some(projected), ..volume(SECRETS) })
    }

    /// The init container that waits until each file has a value. The operator sees that it runs, and which files it waits for.
    fn await_secrets(&self, worker: &WorkerSettings) -> Option<Container> {
        let mut paths: Vec<String> = self.files.iter().map(SecretFile::volume_path).collect();
        paths.sort();
        paths.dedup();
        let dir = secrets_dir();
        let args = [dir.clone()].into_iter().chain(paths).collect();
        (!self.files.is_empty()).then(|| Container {
            args: Some(args),
            volume_mounts: Some(vec![read_only_mount(SECRETS, &dir)]),
            ..helper(SECRETS_CONTAINER, vec!["await-files".to_owned()], worker)
        })
    }
}
