//! The volumes of a worker pod that come from its tenant: Secrets, certificates, and the file systems that its Job
//! binds.

use crate::job::paths;
use crate::job::validate::{Filesystem, ValidAttempt};
use crate::worker_pod::{Credentials, volume, volume_names};
use bloomery_crds::run::ResourceSource;
use k8s_openapi::api::core::v1::{PersistentVolumeClaimVolumeSource, Volume, VolumeMount};
use std::collections::BTreeMap;

/// The volumes. Each Secret and each claim is one volume.
pub(super) fn volumes(attempt: &ValidAttempt) -> Vec<Volume> {
    let claims = claims(attempt);
    let claims = claims.iter().map(|(claim, name)| Volume {
        // Read-only in the volume and not only in the mount, because otherwise the kubelet changes the group of the
        // user's files.
        persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
            claim_name: (*claim).to_owned(),
            read_only: is_read_only(attempt, claim).then_some(true),
        }),
        ..volume(name)
    });
    credentials(attempt).volumes().into_iter().chain(claims).collect()
}

/// The mounts of the volumes.
pub(super) fn mounts(attempt: &ValidAttempt) -> Vec<VolumeMount> {
    credentials(attempt).mounts().into_iter().chain(filesystem_mounts(attempt)).collect()
}

/// The mounts of the file systems that the Job binds.
pub(super) fn filesystem_mounts(attempt: &ValidAttempt) -> Vec<VolumeMount> {
    let claims = claims(attempt);
    let filesystems = attempt.bound.filesystems.iter().filter_map(|filesystem| {
        let Filesystem { name, claim, sub_path, read_only, single_node: _ } = filesystem;
        Some(VolumeMount {
            name: claims.get(claim.as_str())?.clone(),
            mount_path: paths::resource(name),
            sub_path: sub_path.clone(),
            read_only: read_only.then_some(true),
            ..VolumeMount::default()
        })
    });
    filesystems.collect()
}

/// The Secrets and `ConfigMap`s of Models, of bound resources, and of an MCP server outside of the cluster.
fn credentials(attempt: &ValidAttempt) -> Credentials<'_> {
    let of_models = attempt.models.iter().filter_map(|model| model.api_key.as_ref());
    let of_resources = attempt.bound.resources.iter().filter_map(|resource| match &resource.source {
        ResourceSource::Secret(key) => Some(key),
        ResourceSource::Value(_) | ResourceSource::Mount { .. } | ResourceSource::ForServer { .. } => None,
    });
    let of_server = attempt.external_mcp.iter().flat_map(|server| &server.headers).map(|header| &header.file);
    let ca_of_models = attempt.models.iter().filter_map(|model| model.ca.as_ref());
    let ca_of_server = attempt.external_mcp.iter().filter_map(|server| server.ca.as_ref());
    Credentials::new(of_models.chain(of_resources).chain(of_server), ca_of_models.chain(ca_of_server))
}

/// The bound claims, with the names of their volumes. A pod with two volumes of one claim never starts
/// (kubernetes/kubernetes#132921).
fn claims(attempt: &ValidAttempt) -> BTreeMap<&str, String> {
    volume_names("claim", attempt.bound.filesystems.iter().map(|filesystem| filesystem.claim.as_str()))
}

/// Returns whether every binding of the claim is read-only.
fn is_read_only(attempt: &ValidAttempt, claim: &str) -> bool {
    attempt
        .bound
        .filesystems
        .iter()
        .filter(|filesystem| filesystem.claim == claim)
        .all(|filesystem| filesystem.read_only)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::job::fixtures::{filesystem, valid_attempt};
    use bloomery_crds::run::{CaFile, CaObject, ExternalMcp, KeyFile, SecretHeader};
    use std::collections::BTreeSet;

    fn attempt_with(filesystems: Vec<Filesystem>) -> ValidAttempt {
        let mut attempt = valid_attempt();
        attempt.bound.filesystems = filesystems;
        attempt
    }

    /// The claims of the volumes, and whether they are read-only.
    fn claim_volumes(attempt: &ValidAttempt) -> Vec<(String, bool)> {
        let sources = volumes(attempt).into_iter().filter_map(|volume| volume.persistent_volume_claim);
        sources.map(|source| (source.claim_name, source.read_only == Some(true))).collect()
    }

    #[test]
    fn the_credentials_of_an_external_server_are_mounted() {
        let file = |name: &str| KeyFile { path: String::new(), secret: name.into(), key: "token".into() };
        let header = SecretHeader { name: "Authorization".into(), scheme: None, file: file("tools") };
        let ca = CaFile { path: String::new(), object: CaObject::Secret("tools-ca".into()), key: "ca.crt".into() };
        let mut attempt = valid_attempt();
        attempt.external_mcp = Some(ExternalMcp { headers: vec![header], ca: Some(ca) });
        let paths: Vec<String> = mounts(&attempt).into_iter().map(|mount| mount.mount_path).collect();
        for path in ["/etc/bloomery/secrets/tools", "/etc/bloomery/secrets/tools-ca"] {
            assert!(paths.contains(&path.to_owned()), "{paths:?}");
        }
    }

    #[test]
    fn a_claim_that_is_bound_twice_is_one_volume() {
        let twice = attempt_with(vec![filesystem("code", "src", true), filesystem("docs", "src", true)]);
        assert_eq!(claim_volumes(&twice), [("src".into(), true)]);
        assert_eq!(mounts(&twice).iter().filter(|mount| mount.name == "claim-0").count(), 2);
    }

    #[test]
    fn a_claim_with_a_writable_and_a_read_only_binding_is_read_only_in_one_mount() {
        let both = attempt_with(vec![filesystem("code", "src", false), filesystem("docs", "src", true)]);
        assert_eq!(claim_volumes(&both), [("src".into(), false)]);
        let read_only =
            |path: &str| mounts(&both).into_iter().find(|mount| mount.mount_path == path).unwrap().read_only;
        assert_eq!((read_only("/resources/code"), read_only("/resources/docs")), (None, Some(true)));
    }

    #[test]
    fn the_names_of_volumes_and_the_paths_of_mounts_are_unique() {
        let attempt = valid_attempt();
        let (volumes, mounts) = (volumes(&attempt), mounts(&attempt));
        let names: BTreeSet<_> = volumes.iter().map(|volume| &volume.name).collect();
        let secrets: BTreeSet<_> =
            volumes.iter().filter_map(|volume| volume.secret.as_ref()?.secret_name.as_ref()).collect();
        let paths: BTreeSet<_> = mounts.iter().map(|mount| &mount.mount_path).collect();
        assert_eq!((names.len(), paths.len()), (volumes.len(), mounts.len()));
        assert_eq!(secrets.len(), volumes.iter().filter(|volume| volume.secret.is_some()).count());
        assert!(mounts.iter().all(|mount| names.contains(&mount.name)));
    }

    #[test]
    fn secrets_are_optional_and_mounted_read_only_at_the_paths_of_their_keys() {
        let attempt = valid_attempt();
        for key in attempt.models.iter().filter_map(|model| model.api_key.as_ref()) {
            let mounts = mounts(&attempt);
            let mount = mounts.iter().find(|mount| key.path == format!("{}/{}", mount.mount_path, key.key)).unwrap();
            let volume = volumes(&attempt).into_iter().find(|volume| volume.name == mount.name).unwrap();
            let source = volume.secret.unwrap();
            assert_eq!((source.optional, source.items, mount.read_only), (Some(true), None, Some(true)));
        }
    }
}
