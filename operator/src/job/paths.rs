//! Paths within a worker pod.

use bloomery_crds::run::{CaFile, CaObject, KeyFile, MEMORY_ROOT, RESOURCES_ROOT, REVISION_KEY};
use bloomery_crds::v1alpha1::{CaRef, ConfigMapKeyRef, SecretKeyRef};

/// The directory of the revision.
pub const REVISION_DIR: &str = "/etc/bloomery/revision";

/// The directory of the Job's part.
pub(super) const JOB_DIR: &str = "/etc/bloomery/job";

/// The name of the file of the Job's part, in [`JOB_DIR`].
pub(super) const JOB_FILE: &str = "part.json";

/// The directory in which Secrets are mounted, each under its name.
const SECRETS_DIR: &str = "/etc/bloomery/secrets";

/// The directory in which `ConfigMap`s are mounted, each under its name.
const CONFIG_MAPS_DIR: &str = "/etc/bloomery/configmaps";

/// The directory of the token that reports carry.
pub const TOKEN_DIR: &str = "/var/run/bloomery";

/// The name of the file of the token, in [`TOKEN_DIR`].
pub const TOKEN_FILE: &str = "token";

/// The file of the revision.
pub fn revision() -> String {
    format!("{REVISION_DIR}/{REVISION_KEY}")
}

/// The skill directory.
pub(super) fn memory(skill: &str) -> String {
    format!("{MEMORY_ROOT}/{skill}")
}

/// The directory of a Secret. A Secret that is used several times is mounted once.
pub fn secret(name: &str) -> String {
    format!("{SECRETS_DIR}/{name}")
}

/// The file of a key of a Secret.
pub fn key_file(reference: &SecretKeyRef) -> KeyFile {
    let SecretKeyRef { name, key } = reference;
    KeyFile { path: format!("{}/{key}", secret(name)), secret: name.clone(), key: key.clone() }
}

/// The directory of a `ConfigMap`.
pub fn config_map(name: &str) -> String {
    format!("{CONFIG_MAPS_DIR}/{name}")
}

/// The file of a CA certificate; none if the reference names no source. The CRD refuses such a reference.
pub fn ca_file(reference: &CaRef) -> Option<CaFile> {
    let CaRef { secret_key_ref, config_map_key_ref } = reference;
    if let Some(reference) = secret_key_ref {
        let KeyFile { path, secret, key } = key_file(reference);
        return Some(CaFile { path, object: CaObject::Secret(secret), key });
    }
    let ConfigMapKeyRef { name, key } = config_map_key_ref.as_ref()?;
    let path = format!("{}/{key}", config_map(name));
    Some(CaFile { path, object: CaObject::ConfigMap(name.clone()), key: key.clone() })
}

/// The path at which a bound file system is mounted: a directory, or a file if the binding names one.
pub fn resource(name: &str) -> String {
    format!("{RESOURCES_ROOT}/{name}")
}
