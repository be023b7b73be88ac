//! The Secrets and `ConfigMap`s of a tenant that a pod mounts. A pod starts without those that are missing, and its worker reports them.

use super::{read_only_mount, volume};
use crate::job::paths;
use bloomery_crds::run::{CaFile, CaObject, KeyFile};
use k8s_openapi::api::core::v1::{ConfigMapVolumeSource, SecretVolumeSource, Volume, VolumeMount};
use std::collections::{BTreeMap, BTreeSet};

/// The Secrets and `ConfigMap`s that a pod mounts, with the names of their volumes. Each object is one volume.
#[derive(Debug, Clone)]
pub struct Credentials<'a> {
    secrets: BTreeMap<&'a str, String>,
    config_maps: BTreeMap<&'a str, String>,
}

impl<'a> Credentials<'a> {
    /// Collects the objects with these keys and certificates.
    pub fn new(
        keys: impl IntoIterator<Item = &'a KeyFile>,
        certificates: impl IntoIterator<Item = &'a CaFile>,
    ) -> Self {
        let mut secrets: Vec<&str> = keys.into_iter().map(|key| key.secret.as_str()).collect();
        let mut config_maps = Vec::new();
        for ca in certificates {
            match &ca.object {
                CaObject::Secret(name) => secrets.push(name),
                CaObject::ConfigMap(name) => config_maps.push(name.as_str()),
            }
        }
        Self {
            secrets: volume_names("secret", secrets.into_iter()),
            config_maps: volume_names("configmap", config_maps.into_iter()),
        }
    }

    /// Returns the volumes.
    pub fn volumes(&self) -> Vec<Volume> {
        let secrets = self.secrets.iter().map(|(secret, name)| Volume {
            // Optional: the pod starts without the Secret, and the worker reports that it is missing.
            secret: Some(SecretVolumeSource {
                secret_name: Some((*secret).to_owned()),
                optional: Some(true),
                ..SecretVolumeSource::default()
            }),
            ..volume(name)
        });
        let config_maps = self.config_maps.iter().map(|(config_map, name)| Volume {
            // Optional, like the Secrets.
            config_map: Some(ConfigMapVolumeSource {
                name: (*config_map).to_owned(),
                optional: Some(true),
                ..ConfigMapVolumeSource::default()
            }),
            ..volume(name)
        });
        secrets.chain(config_maps).collect()
    }

    /// Returns the mounts of the volumes.
    pub fn mounts(&self) -> Vec<VolumeMount> {
        let secrets = self.secrets.iter().map(|(secret, name)| read_only_mount(name, &paths::secret(secret)));
        let config_maps =
            self.config_maps.iter().map(|(config_map, name)| read_only_mount(name, &paths::config_map(config_map)));
        secrets.chain(config_maps).collect()
    }
}

/// Names a volume for each object. The volumes are numbered, because the name of an object may be too long for the name of a volume.
pub fn volume_names<'a>(prefix: &str, names: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, String> {
    let names: BTreeSet<&str> = names.collect();
    names.into_iter().enumerate().map(|(index, name)| (name, format!("{prefix}-{index}"))).collect()
}
