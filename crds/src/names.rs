//! Names, labels and annotations of the objects that Bloomery creates.

use crate::canonical::Digest;

/// The API group.
pub const GROUP: &str = "bloomery.dev";

/// The longest name of a Skill, Job or Model, in bytes. Names become labels and the names of Services and pods.
pub const MAX_NAME_BYTES: usize = 50;

/// Returns whether a Skill, Job or Model can have this name: a DNS-1035 label of at most [`MAX_NAME_BYTES`].
pub fn is_name(name: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    name.len() <= MAX_NAME_BYTES
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.chars().all(is_allowed)
}

/// Label of every object that is created for a Skill: the name of the Skill.
pub const LABEL_SKILL: &str = "bloomery.dev/skill";

/// Label of every object that is created for a Job: the name of the Job.
pub const LABEL_JOB: &str = "bloomery.dev/job";

/// Label of a Skill that the operator created from a template: the name of the template.
pub const LABEL_TEMPLATE: &str = "bloomery.dev/template";

/// Annotation of a Job. If its value is `true` and the Job's Skill does not exist, the Skill is created from its template.
pub const ANNOTATION_BOOTSTRAP: &str = "bloomery.dev/bootstrap";

/// Label of a worker pod: the number of its attempt.
pub const LABEL_ATTEMPT: &str = "bloomery.dev/attempt";

/// Label of a worker pod whose Job names its run key: the key.
pub const LABEL_RUN_KEY: &str = "bloomery.dev/run-key";

/// Label of an object that Velero has restored from a backup: the name of the restore.
pub const LABEL_RESTORED: &str = "velero.io/restore-name";

/// Label of every pod that mounts a tenant's memory: the name of the claim. If the claim is `ReadWriteOnce`, pods have an affinity to
/// this label, so that all of them are scheduled to one node.
pub const LABEL_MEMORY: &str = "bloomery.dev/memory";

/// Label with the purpose of an object: `worker`, `probe`, `mcp`, `revision`, `memory`, `reclaim`,
/// `network` or `child`.
pub const LABEL_COMPONENT: &str = "app.kubernetes.io/component";

/// Label with the manager of an object. Its value is [`MANAGER`].
pub const LABEL_MANAGED_BY: &str = "app.kubernetes.io/managed-by";

/// The field manager of every object that the operator applies, and the value of [`LABEL_MANAGED_BY`].
pub const MANAGER: &str = "bloomery";

/// Annotation of a worker pod: the Job's part of the run document.
pub const ANNOTATION_JOB_PART: &str = "bloomery.dev/job-part";

/// Annotation of the pod of a probe: its input besides the revision.
pub const ANNOTATION_PROBE_PART: &str = "bloomery.dev/probe-part";

/// Annotation of the pod of a probe: the digest of what it verifies.
pub const ANNOTATION_PROBE_KEY: &str = "bloomery.dev/probe-key";

/// Annotation of the pod of a probe: the number of the try, from 1.
pub const ANNOTATION_PROBE_TRY: &str = "bloomery.dev/probe-try";

/// The value of [`LABEL_COMPONENT`] of the pod of a probe.
pub const COMPONENT_PROBE: &str = "probe";

/// Annotation of a worker pod: the seal that proves that the operator created it.
pub const ANNOTATION_SEAL: &str = "bloomery.dev/seal";

/// Annotation of a worker pod: what the network policy of its Skill allows the worker to connect to, as `host:port`, separated by spaces.
/// The policy allows this until the worker has ended, also if the Skill changes.
pub const ANNOTATION_CONNECTS_TO: &str = "bloomery.dev/connects-to";

/// Annotation of a pod of an MCP server that speaks HTTP: the public keys of the tokens of workers, as a JSON Web Key Set.
pub const ANNOTATION_JWKS: &str = "bloomery.dev/jwks";

/// Annotation of an object that the operator applied: the digest of the applied configuration. It also changes if a field was only
/// removed from the configuration, which a comparison with the object would not find.
pub const ANNOTATION_APPLIED: &str = "bloomery.dev/applied";

/// Annotation of a namespace. While its value is `true`, no pod of a Job runs there.
pub const ANNOTATION_SUSPEND: &str = "bloomery.dev/suspend";

/// Annotation of a namespace: the largest number of Jobs that run there at once. It replaces the value of the installation.
pub const ANNOTATION_MAX_RUNNING_JOBS: &str = "bloomery.dev/max-running-jobs";

/// Annotation of a namespace: the images that its Skills may run. It replaces the value of the installation, as all limits do.
pub const ANNOTATION_ALLOWED_IMAGES: &str = "bloomery.dev/allowed-images";

/// Annotation of a namespace: the largest `steps` of its Skills.
pub const ANNOTATION_MAX_STEPS: &str = "bloomery.dev/max-steps";

/// Annotation of a namespace: the largest `toolCalls` of its Skills.
pub const ANNOTATION_MAX_TOOL_CALLS: &str = "bloomery.dev/max-tool-calls";

/// Annotation of a namespace: the largest `tokens` of its Skills.
pub const ANNOTATION_MAX_TOKENS: &str = "bloomery.dev/max-tokens";

/// Annotation of a namespace: the largest `duration` of its Skills.
pub const ANNOTATION_MAX_DURATION: &str = "bloomery.dev/max-duration";

/// Annotation of a namespace: the tools of MCP servers that Jobs may call there.
pub const ANNOTATION_ALLOWED_TOOLS: &str = "bloomery.dev/allowed-tools";

/// Annotation of a namespace: the tools that no Job may call there.
pub const ANNOTATION_BLOCKED_TOOLS: &str = "bloomery.dev/blocked-tools";

/// Annotation of a namespace: the models that its Models may name.
pub const ANNOTATION_ALLOWED_MODELS: &str = "bloomery.dev/allowed-models";

/// Annotation of a namespace: the URLs that its Models may name.
pub const ANNOTATION_ALLOWED_MODEL_URLS: &str = "bloomery.dev/allowed-model-urls";

/// The annotations of a namespace that limit its Skills, their Jobs and its Models.
pub const TENANT_ANNOTATIONS: [&str; 9] = [
    ANNOTATION_ALLOWED_IMAGES,
    ANNOTATION_MAX_STEPS,
    ANNOTATION_MAX_TOOL_CALLS,
    ANNOTATION_MAX_TOKENS,
    ANNOTATION_MAX_DURATION,
    ANNOTATION_ALLOWED_TOOLS,
    ANNOTATION_BLOCKED_TOOLS,
    ANNOTATION_ALLOWED_MODELS,
    ANNOTATION_ALLOWED_MODEL_URLS,
];

/// The name of a tenant's memory claim. The operator uses an existing claim unchanged.
pub const MEMORY_CLAIM: &str = "bloomery-memory";

/// The name of the network policy that isolates all pods that the operator creates in a namespace. Other policies then allow single
/// connections.
pub const ISOLATION_POLICY: &str = "bloomery-isolation";

/// The finalizer of a Skill whose directory is removed when the Skill is deleted.
pub const FINALIZER_MEMORY: &str = "bloomery.dev/memory";

/// The audience of a worker's projected token. The report endpoint refuses tokens for the API server.
pub const REPORT_AUDIENCE: &str = "bloomery";

/// Returns the name of the ServiceAccount of a Skill's workers.
pub fn worker_service_account(skill: &str) -> String {
    format!("{skill}-worker")
}

/// Returns the name of the network policy of a Skill's workers and probes.
pub fn worker_policy(skill: &str) -> String {
    format!("{skill}-worker")
}

/// Returns the name of the network policy of a Job's workers: `<job>-job-<first 5 characters of the UID>`.
pub fn job_policy(job: &str, uid: &str) -> String {
    format!("{job}-job-{}", uid.get(..5).unwrap_or(uid))
}

/// Returns the name of the Deployment, Service, ServiceAccount and network policy of a Skill's MCP server.
pub fn mcp_server(skill: &str) -> String {
    format!("{skill}-mcp")
}

/// Returns the name of a revision's ConfigMap, which contains the digest of its content.
pub fn revision(skill: &str, digest: &Digest) -> String {
    format!("{skill}-{}", digest.short(8))
}

/// Returns the name of the Job that tests the features of a revision: `<skill>-validate-<first 8 digits of the digest>`.
pub fn validation_job(skill: &str, revision: &Digest) -> String {
    const HEX_DIGITS: usize = 8;
    let suffix = format!("-validate-{}", revision.short(HEX_DIGITS));
    let skill = skill.get(..MAX_NAME_BYTES - suffix.len()).unwrap_or(skill).trim_end_matches('-');
    format!("{skill}{suffix}")
}

/// Returns the name of the pod of an attempt: `<job>-<attempt>-<first 5 characters of the UID>`.
pub fn worker_pod(job: &str, attempt: u32, uid: &str) -> String {
    format!("{job}-{attempt}-{}", uid.get(..5).unwrap_or(uid))
}

/// Returns the name of the pod that removes the directory of a deleted Skill.
pub fn reclaim_pod(skill: &str, uid: &str) -> String {
    format!("{skill}-memory-{}", uid.get(..5).unwrap_or(uid))
}

/// Returns the name of the Job of a worker pod. `None` if [`worker_pod`] could not have returned the pod's name.
pub fn job_of_worker_pod(worker_pod: &str, attempt: u32) -> Option<&str> {
    worker_pod.rsplit_once('-')?.0.strip_suffix(&format!("-{attempt}"))
}

/// Returns the name of the pod of a probe. It depends on what the probe verifies and on the number of its try.
pub fn probe_pod(skill: &str, uid: &str, key: &Digest, number: u32) -> String {
    const HEX_DIGITS: usize = 6;
    let digest = Digest::of_value(&serde_json::json!([uid, key, number]));
    format!("{skill}-probe-{}", digest.short(HEX_DIGITS))
}

/// Returns the name of the Approval of a call for one approver. The same arguments always give the same name.
pub fn approval(job: &str, uid: &str, call: &str, approver: &str) -> String {
    const HEX_DIGITS: usize = 10;
    let digest = Digest::of_value(&serde_json::json!([uid, call, approver]));
    let dash_and_digits = 1 + HEX_DIGITS;
    let job = job.get(..MAX_NAME_BYTES - dash_and_digits).unwrap_or(job).trim_end_matches('-');
    format!("{job}-{}", digest.short(HEX_DIGITS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_the_longest_object_are_valid_labels() {
        let longest = "x".repeat(MAX_NAME_BYTES);
        let uid = "01234567-89ab-cdef-0123-456789abcdef";
        for name in [
            worker_service_account(&longest),
            mcp_server(&longest),
            revision(&longest, &Digest::of_bytes(b"")),
            worker_pod(&longest, 999_999, uid),
            reclaim_pod(&longest, uid),
            worker_policy(&longest),
            job_policy(&longest, uid),
            probe_pod(&longest, uid, &Digest::of_bytes(b""), 999_999),
        ] {
            assert!(name.len() <= 63, "{name} is {} long", name.len());
        }
        assert_eq!(worker_pod("refund", 2, uid), "refund-2-01234");
        assert_eq!(job_of_worker_pod(&worker_pod("refund-2", 12, uid), 12), Some("refund-2"));
        assert_eq!((job_of_worker_pod("refund-2-01234", 1), job_of_worker_pod("refund", 1)), (None, None));
    }

    #[test]
    fn the_name_of_a_validation_depends_on_the_revision() {
        let (digest, longest) = (Digest::of_bytes(b"1"), "x".repeat(MAX_NAME_BYTES));
        assert_eq!(validation_job(&longest, &digest).len(), MAX_NAME_BYTES);
        let name = validation_job("refunds", &digest);
        assert!(name.starts_with("refunds-validate-") && name.len() == 25, "{name}");
        assert_ne!(name, validation_job("refunds", &Digest::of_bytes(b"2")));
    }

    #[test]
    fn the_name_of_an_approval_depends_on_job_call_and_approver() {
        let uid = "01234567-89ab-cdef-0123-456789abcdef";
        let longest = "x".repeat(MAX_NAME_BYTES);
        assert_eq!(approval(&longest, uid, "c-1", "supervisor").len(), MAX_NAME_BYTES);
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
