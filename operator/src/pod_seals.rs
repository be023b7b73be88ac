//! Seals of worker pods. A seal proves that the operator created a pod, even if the admission policy that reserves their label was not
//! in force at that time.
//!
//! A seal is a message authentication code over the name of the pod and the arguments of its worker. The arguments contain the digests of
//! the run document, and with it of the decisions of people. The keys are those of the CA of the report endpoint, which only operators can
//! read.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bloomery_crds::names::ANNOTATION_SEAL;
use bloomery_crds::pod::WORKER_CONTAINER;
use k8s_openapi::api::core::v1::Pod;
use ring::hmac::{self, HMAC_SHA256, Key};
use serde_json::json;
use std::sync::{Arc, PoisonError, RwLock};

/// The first item of a sealed message, because the keys also sign certificates.
const PURPOSE: &str = "bloomery worker pod";

/// Seals pods, and verifies their seals.
#[derive(Debug, Clone, Default)]
pub struct PodSeals(Arc<RwLock<Vec<Key>>>);

impl PodSeals {
    /// Sets the keys, oldest first. New pods are sealed with the newest one.
    pub fn set_keys<'a>(&self, keys: impl Iterator<Item = &'a str>) {
        let keys = keys.map(|key| Key::new(HMAC_SHA256, key.as_bytes())).collect();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = keys;
    }

    /// Returns the pod with its seal. Without a key, no seal is added.
    pub fn sealed(&self, mut pod: Pod) -> Pod {
        let keys = self.0.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = keys.last() {
            let seal = URL_SAFE_NO_PAD.encode(hmac::sign(key, &message(&pod)));
            pod.metadata.annotations.get_or_insert_default().insert(ANNOTATION_SEAL.to_owned(), seal);
        }
        pod
    }

    /// Returns whether a stored pod has the name and the arguments that were sealed.
    pub fn verify(&self, pod: &Pod) -> bool {
        let seal = pod.metadata.annotations.as_ref().and_then(|annotations| annotations.get(ANNOTATION_SEAL));
        let Some(seal) = seal.and_then(|seal| URL_SAFE_NO_PAD.decode(seal).ok()) else { return false };
        let message = message(pod);
        let keys = self.0.read().unwrap_or_else(PoisonError::into_inner);
        keys.iter().any(|key| hmac::verify(key, &message, &seal).is_ok())
    }
}

fn message(pod: &Pod) -> Vec<u8> {
    let containers = pod.spec.iter().flat_map(|spec| &spec.containers);
    let arguments: Vec<_> =
        containers.filter(|container| container.name == WORKER_CONTAINER).map(|container| &container.args).collect();
    json!([PURPOSE, pod.metadata.namespace, pod.metadata.name, arguments]).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_crds::names;
    use rstest::rstest;

    fn seals(keys: &[&str]) -> PodSeals {
        let seals = PodSeals::default();
        seals.set_keys(keys.iter().copied());
        seals
    }

    fn pod() -> Pod {
        let pod = json!({
            "metadata": {"namespace": "acme", "name": "refund-2-01234"},
            "spec": {"containers": [{"name": "worker", "args": ["run", "--job-digest=sha256:1"]}]},
        });
        serde_json::from_value(pod).unwrap()
    }

    fn worker(pod: &mut Pod) -> &mut k8s_openapi::api::core::v1::Container {
        &mut pod.spec.as_mut().unwrap().containers[0]
    }

    #[rstest]
    #[case::unchanged(|_: &mut Pod| {}, true)]
    #[case::with_defaults(|pod: &mut Pod| worker(pod).image_pull_policy = Some("Always".into()), true)]
    #[case::of_another_attempt(|pod: &mut Pod| pod.metadata.name = Some("refund-3-01234".into()), false)]
    #[case::of_another_namespace(|pod: &mut Pod| pod.metadata.namespace = Some("other".into()), false)]
    #[case::with_other_arguments(|pod: &mut Pod| worker(pod).args.as_mut().unwrap()[1] = "--job-digest=sha256:2".into(), false)]
    #[case::with_two_workers(|pod: &mut Pod| {
        let second = worker(pod).clone();
        pod.spec.as_mut().unwrap().containers.push(second);
    }, false)]
    #[case::without_a_seal(|pod: &mut Pod| pod.metadata.annotations = None, false)]
    #[case::with_another_seal(|pod: &mut Pod| {
        pod.metadata.annotations.as_mut().unwrap().insert(names::ANNOTATION_SEAL.into(), "AAAA".into());
    }, false)]
    fn a_seal_covers_the_name_and_the_arguments(#[case] change: fn(&mut Pod), #[case] is_valid: bool) {
        let seals = seals(&["key"]);
        let mut stored = seals.sealed(pod());
        change(&mut stored);
        assert_eq!(seals.verify(&stored), is_valid);
    }

    #[test]
    fn a_seal_is_valid_as_long_as_its_key_is_known() {
        let stored = seals(&["old", "new"]).sealed(pod());
        assert!(seals(&["new", "newest"]).verify(&stored));
        assert!(!seals(&["old"]).verify(&stored));
        let unsealed = seals(&[]).sealed(pod());
        assert!(!seals(&[]).verify(&unsealed) && !seals(&["new"]).verify(&unsealed));
    }
}
