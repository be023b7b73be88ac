//! Builds the pod that removes the directory of a deleted Skill.

use crate::owned;
use crate::settings::WorkerSettings;
use crate::worker_pod;
use bloomery_crds::{names, pod, run};
use k8s_openapi::api::core::v1::{Container, PersistentVolumeClaimVolumeSource, Pod, PodSpec, Volume, VolumeMount};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::SignedDuration;

/// The value of the label with the purpose of the pod.
pub const COMPONENT: &str = "reclaim";

/// The name of the volume.
const MEMORY: &str = "memory";

/// A Skill whose directory is removed.
#[derive(Debug, Clone, Copy)]
pub struct ReclaimedSkill<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its name, which is that of the directory.
    pub name: &'a str,
    /// Its UID.
    pub uid: &'a str,
}

/// Builds the pod. It passes the `restricted` Pod Security Standard, and ends after `time_limit`.
///
/// It mounts the whole memory of the namespace: a directory can be removed only in its parent. The Skill does not own it, because a
/// deletion in the foreground would delete it with the Skill's other objects. It runs as the namespace's default account, without a
/// token: the account of the workers may be gone.
///
/// If only one node can mount the memory, the pod runs on the node of the other pods that mount it.
pub fn build_reclaim_pod(
    skill: ReclaimedSkill<'_>,
    settings: &WorkerSettings,
    is_memory_single_node: bool,
    time_limit: SignedDuration,
) -> Pod {
    let ReclaimedSkill { namespace, name, uid } = skill;
    let memory_label = (names::LABEL_MEMORY.to_owned(), names::MEMORY_CLAIM.to_owned());
    let mut labels = owned::labels(COMPONENT);
    labels.extend([(names::LABEL_SKILL.to_owned(), name.to_owned()), memory_label.clone()]);
    let memory = PersistentVolumeClaimVolumeSource {
        claim_name: names::MEMORY_CLAIM.to_owned(),
        ..PersistentVolumeClaimVolumeSource::default()
    };
    let volumes = vec![Volume { persistent_volume_claim: Some(memory), ..worker_pod::volume(MEMORY) }];
    let deadline = time_limit.as_secs().max(1);
    let spec = PodSpec {
        restart_policy: Some("OnFailure".to_owned()),
        termination_grace_period_seconds: Some(1),
        affinity: is_memory_single_node.then(|| pod::same_node_as(memory_label)),
        ..worker_pod::spec(settings, &settings.pod, container(skill, settings), volumes, deadline)
    };
    let mut metadata = ObjectMeta {
        namespace: Some(namespace.to_owned()),
        name: Some(names::reclaim_pod(name, uid)),
        labels: Some(labels),
        ..ObjectMeta::default()
    };
    settings.pod.without_queue().label(&mut metadata);
    Pod { metadata, spec: Some(spec), status: None }
}

fn container(skill: ReclaimedSkill<'_>, settings: &WorkerSettings) -> Container {
    let args = vec![
        "reclaim".to_owned(),
        format!("--memory={}", run::MEMORY_ROOT),
        format!("--skill={}", skill.name),
        format!("--skill-uid={}", skill.uid),
    ];
    let mount =
        VolumeMount { name: MEMORY.to_owned(), mount_path: run::MEMORY_ROOT.to_owned(), ..VolumeMount::default() };
    worker_pod::container(settings, args, vec![mount])
}

#[cfg(test)]
mod tests {
    use super::super::metadata::yaml;
    use super::*;
    use crate::job::fixtures::worker_settings;

    fn built(is_memory_single_node: bool, seconds: i64) -> Pod {
        let skill = ReclaimedSkill { namespace: "acme", name: "orders", uid: "01234567-89ab" };
        build_reclaim_pod(skill, &worker_settings(), is_memory_single_node, SignedDuration::from_secs(seconds))
    }

    #[test]
    fn the_pod_on_the_node_of_the_memory() {
        insta::assert_snapshot!("reclaim_pod", yaml(&built(true, 270)));
    }

    #[test]
    fn the_pod_has_the_labels_of_the_installation_and_does_not_wait_in_a_queue() {
        let mut settings = worker_settings();
        settings.pod.pod_labels.insert("team".to_owned(), "a".to_owned());
        settings.pod.pod_labels.insert("kueue.x-k8s.io/queue-name".to_owned(), "agents".to_owned());
        let skill = ReclaimedSkill { namespace: "acme", name: "orders", uid: "01234567-89ab" };
        let pod = build_reclaim_pod(skill, &settings, false, SignedDuration::from_secs(9));
        let labels = pod.metadata.labels.unwrap();
        assert_eq!((labels["team"].as_str(), labels.contains_key("kueue.x-k8s.io/queue-name")), ("a", false));
    }

    #[test]
    fn a_memory_that_all_nodes_can_mount_needs_no_affinity() {
        let spec = built(false, 0).spec.unwrap();
        assert_eq!((spec.affinity, spec.active_deadline_seconds), (None, Some(1)));
    }
}
