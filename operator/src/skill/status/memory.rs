//! Checks whether the tenant's memory is available.

use super::super::apply::AppliedSkill;
use super::super::fetch::FetchedSkill;
use super::finding::{Finding, object_fault};
use crate::apply::ApplyResult;
use bloomery_crds::conditions::{ConditionType, Observation, Reason};
use bloomery_crds::names::MEMORY_CLAIM;
use k8s_openapi::api::core::v1::PersistentVolumeClaim;

/// The condition that this module computes.
const KIND: ConditionType = ConditionType::MemoryReady;

/// The annotation that Kubernetes sets once a volume was requested from a provisioner.
const PROVISIONER_ANNOTATION: &str = "volume.kubernetes.io/storage-provisioner";

/// Describes the state of the claim. A pending claim does not block the Skill: many claims are bound only when their first
/// pod is created, and the scheduler reports why a pod cannot have its volume.
pub(super) fn finding(applied: &AppliedSkill, fetched: &FetchedSkill) -> Finding {
    let what = format!("PersistentVolumeClaim {MEMORY_CLAIM}");
    if let Some(finding) = object_fault(KIND, &what, &applied.memory_claim) {
        return finding;
    }
    if let Some(fault) = &fetched.memory_fault {
        return Finding::waits(KIND, Reason::NotWritable, fault.clone());
    }
    let claim = match &applied.memory_claim {
        ApplyResult::Written(claim) => Some(claim.as_ref()),
        _ => fetched.memory_claim.as_deref(),
    };
    claim.map_or_else(healthy_until_first_use, |claim| claim_finding(claim, fetched.unbound_pod.as_deref()))
}

/// Describes the state of a claim. `unbound_pod` is a pod that the scheduler does not place because a claim is not bound.
fn claim_finding(claim: &PersistentVolumeClaim, unbound_pod: Option<&str>) -> Finding {
    if claim.metadata.deletion_timestamp.is_some() {
        let message = format!("{MEMORY_CLAIM} is being deleted; a new, empty one is created when it is gone");
        return Finding::waits(KIND, Reason::ClaimPending, message);
    }
    if is_for_one_pod(claim) {
        let message = format!(
            "{MEMORY_CLAIM} is ReadWriteOncePod, so only one Job of the namespace could run at a time: delete the claim, and create it \
             as ReadWriteOnce or ReadWriteMany. Copy its data first if you need it"
        );
        return Finding::stalls(KIND, Reason::SinglePodClaim, message);
    }
    let phase = claim.status.as_ref().and_then(|status| status.phase.as_deref());
    match phase.unwrap_or("Pending") {
        "Bound" => Finding::healthy(KIND, Reason::Bound, format!("{MEMORY_CLAIM} is bound")),
        "Lost" => Finding::stalls(
            KIND,
            Reason::ClaimLost,
            format!(
                "{MEMORY_CLAIM} lost its volume: restore the PersistentVolume, or delete the claim to begin with an empty memory"
            ),
        ),
        _ => pending(claim, unbound_pod),
    }
}

/// Returns whether only one pod at a time can mount the claim.
fn is_for_one_pod(claim: &PersistentVolumeClaim) -> bool {
    let modes = claim.spec.as_ref().and_then(|spec| spec.access_modes.as_ref());
    modes.into_iter().flatten().any(|mode| mode == "ReadWriteOncePod")
}

fn pending(claim: &PersistentVolumeClaim, unbound_pod: Option<&str>) -> Finding {
    let class = claim.spec.as_ref().and_then(|spec| spec.storage_class_name.as_deref()).unwrap_or_default();
    let is_provisioning =
        claim.metadata.annotations.as_ref().is_some_and(|all| all.contains_key(PROVISIONER_ANNOTATION));
    if class.is_empty() {
        return unknown(format!(
            "{MEMORY_CLAIM} has no storage class, and the cluster has no default class: create a volume for it, or a default class"
        ));
    }
    if is_provisioning {
        return unknown(format!(
            "class {class} is provisioning a volume for {MEMORY_CLAIM}; if it stays so, kubectl describe pvc {MEMORY_CLAIM} shows why"
        ));
    }
    if let Some(pod) = unbound_pod {
        return unknown(format!(
            "{MEMORY_CLAIM} of the class {class} is not bound, and the pod {pod} cannot start without it: kubectl describe pvc \
             {MEMORY_CLAIM} shows why. Create the storage class or a volume for the claim, or delete the claim and create it with \
             another class"
        ));
    }
    healthy_until_first_use()
}

fn healthy_until_first_use() -> Finding {
    let message = format!("{MEMORY_CLAIM} is not bound yet: the first Job that uses it binds it");
    Finding::healthy(KIND, Reason::WaitingForFirstConsumer, message)
}

/// A finding with the condition status `Unknown`, which does not block the Skill.
fn unknown(message: String) -> Finding {
    Finding {
        observation: Observation { kind: KIND, holds: None, reason: Reason::ClaimPending, message },
        blocker: None,
    }
}
