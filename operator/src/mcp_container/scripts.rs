//! Builds the sidecar of a worker pod that runs the scripts of its Skill.
//!
//! It is a stdio server of the scope Job whose program is the bridge itself: `bloomery-bridge scripts` lists the files of a directory as
//! tools, and runs them. The files are the keys of the revision's ConfigMap that hold scripts, so the server sees nothing else of it.

use super::bridge;
use super::sidecar::Sidecar;
use crate::settings::McpSettings;
use crate::worker_pod::volume;
use bloomery_crds::pod::SCRIPTS_CONTAINER;
use bloomery_crds::run::McpEndpoint;
use bloomery_crds::scripts::{revision_key, timeout_seconds};
use bloomery_crds::v1alpha1::{McpContainer, McpServer, McpTransport, Scripts, SkillSpec};
use k8s_openapi::api::core::v1::{ConfigMapVolumeSource, KeyToPath, Volume};

/// The directory of the scripts. It is not one that an image has.
const DIR: &str = "/bloomery-scripts";

/// The path of the MCP endpoint.
const PATH: &str = "/mcp";

/// The ports on which the bridge may listen. The MCP server of the Job may have one of them.
const PORTS: [u16; 2] = [9090, 9091];

/// The mode of the files: everybody may read and run them.
const FILE_MODE: i32 = 0o555;

/// Returns the address of the scripts of a Skill, for the worker of the same pod.
pub fn endpoint(spec: &SkillSpec) -> Option<McpEndpoint> {
    spec.scripts.as_ref()?;
    Some(McpEndpoint { url: format!("http://127.0.0.1:{}{PATH}", port(spec)) })
}

/// Returns the sidecar that runs the scripts of a Skill; none if the Skill has no scripts. `revision` is the name of the ConfigMap of the
/// revision with this spec.
///
/// # Errors
/// Returns a sentence for each resource that the installation does not allow.
pub fn sidecar(spec: &SkillSpec, revision: &str, settings: &McpSettings) -> Result<Option<Sidecar>, Vec<String>> {
    let Some(scripts) = &spec.scripts else { return Ok(None) };
    let sidecar = Sidecar::new(&container(scripts, port(spec)), None, settings)?;
    Ok(Some(sidecar.named(SCRIPTS_CONTAINER, files(scripts, revision), DIR)))
}

fn container(scripts: &Scripts, port: u16) -> McpContainer {
    let command = [
        bridge::program(),
        "scripts".to_owned(),
        format!("--dir={DIR}"),
        format!("--timeout-seconds={}", timeout_seconds(scripts)),
    ];
    McpContainer {
        image: scripts.image.clone(),
        transport: Some(McpTransport::Stdio),
        command: command.to_vec(),
        args: Vec::new(),
        port,
        path: PATH.to_owned(),
        health: None,
        env: Vec::new(),
        bindings: Vec::new(),
        resources: None,
        protect: None,
    }
}

/// Returns the first port that the MCP server of the Job does not use.
fn port(spec: &SkillSpec) -> u16 {
    let used = spec.mcp_server.as_ref().and_then(McpServer::sidecar).map(|server| server.port);
    PORTS.into_iter().find(|port| Some(*port) != used).unwrap_or_default()
}

fn files(scripts: &Scripts, revision: &str) -> Volume {
    let item = |file: &String| KeyToPath { key: revision_key(file), path: file.clone(), mode: None };
    let source = ConfigMapVolumeSource {
        name: revision.to_owned(),
        items: Some(scripts.files.keys().map(item).collect()),
        default_mode: Some(FILE_MODE),
        optional: None,
    };
    Volume { config_map: Some(source), ..volume(SCRIPTS_CONTAINER) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures::{mcp_settings, worker_settings};
    use crate::skill::fixtures;
    use k8s_openapi::api::core::v1::{Container, PodSpec};
    use serde_json::json;

    fn built(spec: &SkillSpec) -> PodSpec {
        let mut pod = PodSpec::default();
        sidecar(spec, "orders-1", &mcp_settings()).unwrap().unwrap().add_to(&mut pod, &worker_settings(), Vec::new());
        pod
    }

    #[test]
    fn the_scripts_see_only_their_files_the_bridge_and_an_empty_directory() {
        let pod = built(&fixtures::with_scripts().spec);
        let [copy, scripts]: [Container; 2] = pod.init_containers.unwrap().try_into().unwrap();
        assert_eq!((copy.name.as_str(), scripts.name.as_str()), ("bridge", "scripts"));
        assert_eq!((scripts.env, scripts.env_from, scripts.restart_policy.as_deref()), (None, None, Some("Always")));
        let mounts =
            scripts.volume_mounts.unwrap().into_iter().map(|mount| (mount.name, mount.read_only == Some(true)));
        let expected = [("scripts-tmp", false), ("bridge", true), ("scripts", true)];
        assert_eq!(mounts.collect::<Vec<_>>(), expected.map(|(name, read_only)| (name.to_owned(), read_only)));
        let source = pod.volumes.unwrap().into_iter().find_map(|volume| volume.config_map).unwrap();
        let items = source.items.unwrap().into_iter().map(|item| (item.key, item.path)).collect::<Vec<_>>();
        let expected = [("script.check.py", "check.py"), ("script.check.sh", "check.sh")];
        assert_eq!(
            items,
            expected.map(|(key, path)| (key.to_owned(), path.to_owned())),
            "the revision itself is no file"
        );
        assert_eq!(scripts.security_context.unwrap().read_only_root_filesystem, Some(true));
    }

    #[test]
    fn the_sidecar_has_the_default_resources_of_mcp_servers() {
        let pod = built(&fixtures::with_scripts().spec);
        let limits = pod.init_containers.unwrap().pop().unwrap().resources.unwrap().limits.unwrap();
        let limits: Vec<(&str, &str)> = limits.iter().map(|(name, limit)| (name.as_str(), limit.0.as_str())).collect();
        assert_eq!(limits, [("cpu", "3"), ("memory", "128Mi")]);
    }

    #[test]
    fn the_port_is_not_that_of_the_mcp_server() {
        let mut spec = fixtures::with_scripts().spec;
        assert_eq!(endpoint(&spec).unwrap().url, "http://127.0.0.1:9090/mcp");
        let server = json!({"scope": "Job", "container": {"image": "localhost/db:5", "port": 9090}});
        spec.mcp_server = serde_json::from_value(server).unwrap();
        assert_eq!(endpoint(&spec).unwrap().url, "http://127.0.0.1:9091/mcp");
        assert_eq!(endpoint(&fixtures::without_server().spec), None);
    }
}
