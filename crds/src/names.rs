//! Names, labels and annotations of everything that Bloomery makes.

use crate::canonical::Digest;

/// The API group.
pub const GROUP: &str = "bloomery.dev";

/// The longest name of a Skill, Job or Model: names become labels, Services and pod names.
pub const MAX_NAME: usize = 50;

/// Label on every object made for a Skill: the Skill's name.
pub const LABEL_SKILL: &str = "bloomery.dev/skill";

/// Label on every object made for a Job: the Job's name.
pub const LABEL_JOB: &str = "bloomery.dev/job";

/// Label on a worker pod: the number of its attempt.
pub const LABEL_ATTEMPT: &str = "bloomery.dev/attempt";

/// Label on every pod that mounts a tenant's memory: the claim's name. A claim that one node may mount binds
/// its pods together by it.
pub const LABEL_MEMORY: &str = "bloomery.dev/memory";

/// Label that says what an object is for: `worker`, `mcp`, `revision`, `memory`.
pub const LABEL_COMPONENT: &str = "app.kubernetes.io/component";

/// Label that says who manages an object; its value is [`MANAGER`].
pub const LABEL_MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// The field manager of every object that the operator applies, and the value of [`LABEL_MANAGED_BY`].
pub const MANAGER: &str = "bloomery";

/// Annotation of a worker pod that holds the Job's part of the run document.
pub const ANNOTATION_JOB_PART: &str = "bloomery.dev/job-part";

/// Annotation of an object that the operator applied: the digest of what it wanted, so that a field which is no
/// longer wanted is noticed.
pub const ANNOTATION_APPLIED: &str = "bloomery.dev/applied";

/// Annotation of a namespace: while its value is `true` no pod of a Job runs there.
pub const ANNOTATION_SUSPEND: &str = "bloomery.dev/suspend";

/// The memory claim of a tenant; one that exists already is used as it is.
pub const MEMORY_CLAIM: &str = "bloomery-memory";

/// The audience of a worker's projected token; a token for the API server is refused.
pub const REPORT_AUDIENCE: &str = "bloomery";

/// The ServiceAccount that the workers of a Skill run as.
pub fn worker_service_account(skill: &str) -> String {
    format!("{skill}-worker")
}

/// The Deployment, Service and ServiceAccount of a Skill's MCP server.
pub fn mcp_server(skill: &str) -> String {
    format!("{skill}-mcp")
}

/// The ConfigMap of a revision, named by its content.
pub fn revision(skill: &str, digest: &Digest) -> String {
    format!("{skill}-{}", digest.short(8))
}

/// The pod of one attempt of a Job: `<job>-<attempt>-<5 of the UID>`.
pub fn worker_pod(job: &str, attempt: u32, uid: &str) -> String {
    format!("{job}-{attempt}-{}", uid.get(..5).unwrap_or(uid))
}

/// The Job of the pod of one of its attempts; none of a pod that has another name.
pub fn job_of(worker_pod: &str, attempt: u32) -> Option<&str> {
    worker_pod.rsplit_once('-')?.0.strip_suffix(&format!("-{attempt}"))
}

/// The Approval of a call of a Job for one approver: the same whenever it is made.
pub fn approval(job: &str, uid: &str, call: &str, approver: &str) -> String {
    let digest = Digest::of_value(&serde_json::json!([uid, call, approver]));
    let job = job.get(..MAX_NAME - 11).unwrap_or(job).trim_end_matches('-');
    format!("{job}-{}", digest.short(10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_of_a_longest_object_is_a_label() {
        let longest = "x".repeat(MAX_NAME);
        let uid = "01234567-89ab-cdef-0123-456789abcdef";
        for name in [
            worker_service_account(&longest),
            mcp_server(&longest),
            revision(&longest, &Digest::of_bytes(b"")),
            worker_pod(&longest, 999_999, uid),
        ] {
            assert!(name.len() <= 63, "{name} is {} long", name.len());
        }
        assert_eq!(worker_pod("refund", 2, uid), "refund-2-01234");
        assert_eq!(job_of(&worker_pod("refund-2", 12, uid), 12), Some("refund-2"));
        assert_eq!((job_of("refund-2-01234", 1), job_of("refund", 1)), (None, None));
    }

    #[test]
    fn an_approval_is_named_by_its_job_call_and_approver() {
        let uid = "01234567-89ab-cdef-0123-456789abcdef";
        let longest = "x".repeat(MAX_NAME);
        assert_eq!(approval(&longest, uid, "c-1", "supervisor").len(), MAX_NAME);
        let name = approval("refund", uid, "c-1", "supervisor");
        assert!(name.starts_with("refund-") && name.len() == 17, "{name}");
        assert_eq!(name, approval("refund", uid, "c-1", "supervisor"));
        for other in [
            approval("refund", "another", "c-1", "supervisor"),
            approval("refund", uid, "c-2", "supervisor"),
            approval("refund", uid, "c-1", "finance"),
        ] {
            assert_ne!(name, other);
        }
    }
}
