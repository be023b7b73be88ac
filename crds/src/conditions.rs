//! The conditions of Bloomery's objects, in the form that kstatus, Argo CD and Flux read.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use strum::{Display, EnumString, IntoStaticStr};

/// The condition types of Bloomery's objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr)]
pub enum ConditionType {
    /// The object is healthy: a Skill can be used, a Job ended well, a Model can be called, an Approval counts.
    Ready,
    /// The object is in progress or waits for something. Present only while true, as kstatus requires.
    Reconciling,
    /// The object needs a person. Present only while true, as kstatus requires.
    Stalled,
    /// The Skill's spec is valid and compiled into a revision.
    Accepted,
    /// Every Model of the Skill, and every fallback of it, is ready. A missing key is known only while a Job of the namespace waits for it.
    ModelsReady,
    /// The tenant's memory claim can be used.
    MemoryReady,
    /// The network policies of the Skill are in place and allow all that it needs. `False` names what the Skill may not connect to.
    /// Absent before the operator has built them.
    NetworkReady,
    /// The Skill's MCP server accepts connections.
    McpAvailable,
    /// A probe has listed the tools of the Skill's MCP server, and all rules of the Skill fit them.
    McpVerified,
    /// The tools of the Skill's MCP server are those that are pinned in `status.tools`. `False` names each tool that differs, and what
    /// changed.
    ToolsPinned,
    /// The Skill is within the limits of its namespace. Present only while `False`: a limit was lowered after the Skill was applied, and no
    /// Job of the Skill starts. The message names each limit.
    WithinLimits,
    /// The tool policy of the namespace allows all tools that the Skill declares. Present only while `False`; the message names the tools
    /// whose calls are denied.
    ToolsAllowed,
    /// The Skills that the Skill may invoke and those that its features name exist in the namespace. Present only while `False`: Jobs run
    /// without the missing Skills. The message names them.
    SubskillsFound,
    /// The Deployment and the Service of the Skill's MCP server are as the operator wrote them. Present only while `False`; the
    /// message names each difference.
    McpAsWritten,
    /// The image of the Skill's MCP server is the one that it was when the Skill first named it. Present only while `False`; the message
    /// names both IDs.
    McpImageUnchanged,
    /// All features of the Skill have passed on its current revision. `Unknown` if one was not tested. Absent if the Skill has no features
    /// to test.
    Validated,
    /// The Skill works as written for this Job. Present only while `False`; the message names each difference.
    SkillAsWritten,
    /// Every limit of the Job is within the limits of its Skill. Present only while `False`; the message names each limit that is above
    /// them.
    LimitsAsWritten,
    /// The Job waits for a decision or an answer of a person. Absent until the Job waits for the first time.
    AwaitingPeople,
    /// Every reply of the Job has answered an open question. Present only while `False`.
    RepliesTaken,
    /// The worker reported the end of the last pod. `False` if the operator read the end from the pod's termination message.
    Reported,
}

/// The reasons of conditions. The second paragraph of each doc comment is its remedy: `hack/reference` publishes both.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Display, EnumString, IntoStaticStr)]
pub enum Reason {
    /// The object is healthy.
    ///
    /// Remedy: none.
    Ready,
    /// The spec was compiled.
    ///
    /// Remedy: none.
    Compiled,
    /// The spec, or an object that it names, cannot be used. The message names the field.
    ///
    /// Remedy: correct the field; `bloomery lint` checks a manifest before it is applied.
    Invalid,
    /// An object with the required name exists and was not created by the operator.
    ///
    /// Remedy: rename or delete that object, or rename the Skill. Find out who created a pod under the name of an attempt.
    NameTaken,
    /// An immutable object of the operator was replaced by one with other content.
    ///
    /// Remedy: delete the ConfigMap that the message names; the operator writes it again.
    Replaced,
    /// The API server refused a required object. The message has its reason.
    ///
    /// Remedy: correct the cause, for example a quota or an admission policy; the operator retries.
    Refused,
    /// The memory claim is bound.
    ///
    /// Remedy: none.
    Bound,
    /// The memory claim is not bound until the first pod uses it. This blocks no Job.
    ///
    /// Remedy: none.
    WaitingForFirstConsumer,
    /// The memory claim is not bound yet.
    ///
    /// Remedy: `kubectl describe pvc bloomery-memory` shows why; check the storage class.
    ClaimPending,
    /// The memory claim lost its volume.
    ///
    /// Remedy: restore the volume, or delete the claim and accept the loss of its data.
    ClaimLost,
    /// The worker's user cannot write to the memory.
    ///
    /// Remedy: give the group of the chart's `worker.fsGroup` write access to the volume.
    NotWritable,
    /// Only one pod at a time can use the memory claim (`ReadWriteOncePod`), so Jobs would block one another.
    ///
    /// Remedy: delete the claim and create it as `ReadWriteOnce` or `ReadWriteMany`; copy its data first if you need it.
    SinglePodClaim,
    /// The Skill's directory is larger than `spec.memory.softLimit`, so no new Job starts.
    ///
    /// Remedy: raise the limit, or free memory: the message names the largest directories (docs/how-to/manage-memory.md).
    SoftLimitReached,
    /// The Skill was deleted, and its directory stays in the memory, although its `memory.reclaimPolicy` is `Delete`.
    ///
    /// Remedy: remove the directory that the message names.
    DirectoryStays,
    /// The network policies are in place.
    ///
    /// Remedy: none.
    Isolated,
    /// The chart switches network policies off (`network.policies`), so the operator writes none.
    ///
    /// Remedy: none; to restrict the network of Skills, set the value to true.
    NotIsolated,
    /// A Model, an MCP server, its `egress` or a binding names a host that tenants may not connect to: a private address, the API server,
    /// another namespace, or a range of the chart's `network.deny`. The operator writes no network policy for it.
    ///
    /// Remedy: name a public host or a Service of the namespace, or ask the cluster's admin to list the host in the chart's
    /// `network.shared` or `worker.endpointRanges` (docs/how-to/network.md).
    EgressNotAllowed,
    /// The Skill has no MCP server. The message lists the tools that it names and that its Jobs do not have.
    ///
    /// Remedy: If the message lists tools, correct their names, or set `spec.mcpServer` to a server that has them.
    NoMcpServer,
    /// All features of the Skill have passed on its current revision, or other Skills test all of them.
    ///
    /// Remedy: none.
    FeaturesPassed,
    /// A feature of the Skill has failed on its current revision. As an Event: it had passed before.
    ///
    /// Remedy: read the reasons in `status.features`; correct the Skill or the feature, and test the new revision (docs/how-to/validate-a-skill.md).
    FeatureFailed,
    /// A feature of the Skill was not tested on its current revision. As the reason of a Job: the Skill has no validated revision, and
    /// `engine.validation.requireFor` needs one.
    ///
    /// Remedy: create a Job with `mode: Validate`, or set `engine.validation.onChange` (docs/how-to/validate-a-skill.md).
    NotValidated,
    /// The Skill or the Model asks for more than its namespace allows now, so no new Job of it starts. Jobs that run now go on.
    ///
    /// Remedy: change the object as the message says, or ask the cluster's admin to raise the limit (docs/how-to/limit-tenants.md).
    BeyondLimit,
    /// The tool policy of the namespace denies tools that the Skill declares. Jobs run, and their calls of these tools are denied.
    ///
    /// Remedy: none if the Skill works without the tools; else ask the cluster's admin to allow them (docs/how-to/limit-tenants.md).
    ToolsDenied,
    /// The MCP server accepts connections.
    ///
    /// Remedy: none.
    Available,
    /// The pods of the MCP server are not ready yet.
    ///
    /// Remedy: none; if it lasts, `kubectl describe` the pods of its Deployment.
    Progressing,
    /// The MCP server did not become ready in time, or does not answer.
    ///
    /// Remedy: `kubectl describe` and `kubectl logs` its pods, or with `scope: Job` the container `mcp` of the worker pod; check port and path
    /// in `spec.mcpServer`.
    McpUnavailable,
    /// The Service that the Skill names does not exist.
    ///
    /// Remedy: create the Service in the Skill's namespace, or correct `spec.mcpServer.service.name`.
    ServiceNotFound,
    /// The Service that the Skill names does not have the port in `spec.mcpServer.service.port`.
    ///
    /// Remedy: correct `spec.mcpServer.service.port`, or add the port to the Service.
    PortNotFound,
    /// No pod behind the Service of the MCP server is ready.
    ///
    /// Remedy: compare the selector of the Service with the labels of the server's pods, and see why no pod is ready.
    NoEndpoints,
    /// The probe of the MCP server has not reported yet.
    ///
    /// Remedy: none; a probe lists the tools once the server is available.
    Verifying,
    /// The probe has listed the tools, and all rules of the Skill fit them.
    ///
    /// Remedy: none.
    Verified,
    /// The probe of the MCP server could not list its tools. It is repeated with increasing delays.
    ///
    /// Remedy: correct what the message names: the server, `spec.mcpServer`, or what keeps the pod of the probe from running.
    ProbeFailed,
    /// Rules of the Skill do not fit the tools of its MCP server: they name a tool or an argument that does not exist, or cannot be
    /// compiled.
    ///
    /// Remedy: correct the fields that the message names; `spec.policy.allowUnmatched: true` accepts rules for tools that the server lacks.
    RulesInvalid,
    /// The tools of the MCP server are those that are pinned.
    ///
    /// Remedy: none.
    Pinned,
    /// The MCP server offers other tools than those that are pinned. Jobs run, and are denied the tools that differ.
    ///
    /// Remedy: find out who changed the server; to accept its tools, set `spec.mcpServer.toolsDigest` to `status.tools.found.digest`.
    ToolsChanged,
    /// Another writer sets back what the operator writes. The operator does not try again until the object or the Skill changes.
    ///
    /// Remedy: exempt the objects that the message names from the admission webhook or controller that changes them.
    Reverted,
    /// The tag of an image was moved to another image.
    ///
    /// Remedy: find out who moved it. To use the new image, name it by its digest in `spec.mcpServer.container.image`.
    ImageChanged,
    /// A ConfigMap that `spec.policy.listsFrom` of the Skill names, or the key in it, does not exist.
    ///
    /// Remedy: create the ConfigMap with the key in the Skill's namespace, or correct the name; the Skill becomes ready by itself.
    ListNotFound,
    /// The ConfigMap that `spec.scripts.configMap` of the Skill names does not exist.
    ///
    /// Remedy: create the ConfigMap in the Skill's namespace, or correct the name; the Skill becomes ready by itself.
    ScriptsNotFound,
    /// The features of Skills name each other as `ext.subskill` in a cycle, so none of these Skills is accepted. The message names the
    /// cycle.
    ///
    /// Remedy: remove `ext.subskill` from a feature of one of these Skills; the others become ready by themselves.
    SubskillCycle,
    /// A Skill that `spec.skills` or a feature of the Skill names does not exist. Jobs run without it.
    ///
    /// Remedy: create the Skill in the same namespace, or correct the name; the condition disappears by itself.
    SubskillMissing,
    /// The Skill that the Job names does not exist.
    ///
    /// Remedy: create the Skill; the Job starts then.
    SkillNotFound,
    /// The Skill that the Job names is not ready.
    ///
    /// Remedy: read the conditions of the Skill; the Job starts when it is ready.
    SkillNotReady,
    /// A Model that the Skill or another Model names does not exist.
    ///
    /// Remedy: create the Model in the same namespace, or correct the name.
    ModelNotFound,
    /// A Model that the Skill names is not ready.
    ///
    /// Remedy: read the conditions of the Model.
    ModelNotReady,
    /// The model does not answer, or refuses to.
    ///
    /// Remedy: check the Model's `baseUrl`, key and quota; the message quotes the provider.
    ModelUnavailable,
    /// A Secret, or a key of it, does not exist.
    ///
    /// Remedy: create the Secret with the key that the message names; the worker, or the MCP server in its pod, finds it without a restart.
    SecretMissing,
    /// Workers cannot report: the report endpoint has no certificate that they can trust.
    ///
    /// Remedy: read the operator's log; it must be able to update the Secret `bloomery-report-ca` in its namespace.
    ReportUnavailable,
    /// The run document is larger than a pod can carry.
    ///
    /// Remedy: shorten the Skill, the goal or the bindings.
    TooLarge,
    /// A limit of the Job is above the limit of its Skill, which applies.
    ///
    /// Remedy: none; to allow more, raise `engine.limits` of the Skill before the Job starts.
    AboveSkill,
    /// The pod was created and has not reported yet.
    ///
    /// Remedy: none; if it lasts, `kubectl describe` the pod.
    Starting,
    /// The pod cannot be scheduled.
    ///
    /// Remedy: `kubectl describe` the pod; add capacity, or change requests, quotas or taints.
    Unschedulable,
    /// The image of the pod cannot be pulled.
    ///
    /// Remedy: check the image and the pull secrets; for workers, the chart's `worker.image`.
    ImageUnavailable,
    /// The pod cannot start. The message has the reason.
    ///
    /// Remedy: correct what the message names, for example a missing volume.
    PodNotStarting,
    /// The worker is running.
    ///
    /// Remedy: none.
    Running,
    /// The finalization gate checks an answer.
    ///
    /// Remedy: none.
    Finalizing,
    /// The worker parked, and the Job resumes in a new pod.
    ///
    /// Remedy: none.
    Parked,
    /// The previous attempt ended without an outcome. The next attempt starts after a backoff.
    ///
    /// Remedy: `kubectl logs` the pod that ended, if it happens repeatedly.
    BackOff,
    /// The node of the pod does not answer. No second pod is started meanwhile.
    ///
    /// Remedy: restore the node, or delete it; the Job resumes then.
    NodeLost,
    /// The worker reported the end of its pod.
    ///
    /// Remedy: none.
    Reported,
    /// The end of the pod was read from its termination message, because the report did not arrive.
    ///
    /// Remedy: none for the Job; if it happens repeatedly, check the network between workers and operator.
    ReportLost,
    /// A report contradicts an earlier one about the same event of the log, and was refused: somebody else than the worker has
    /// reported or has written to the log.
    ///
    /// Remedy: find out who may enter the pods of the namespace or write to its memory; compare `status.log` with the log.
    ReportConflict,
    /// The Job succeeded.
    ///
    /// Remedy: none.
    Succeeded,
    /// The Job failed. The outcome has the reason.
    ///
    /// Remedy: see the outcome code; then create the Job again.
    Failed,
    /// The goal is not one of the Skill's intents. The outcome names them.
    ///
    /// Remedy: use another Skill, or another goal.
    OutOfDomain,
    /// A call waits for a decision.
    ///
    /// Remedy: decide on the Approval: `kubectl bloomery approve` or `deny`.
    AwaitingApproval,
    /// A question waits for an answer.
    ///
    /// Remedy: answer it: `kubectl bloomery reply`.
    AwaitingReply,
    /// A Job that this Job invoked has not ended. The message names it, and what it waits for.
    ///
    /// Remedy: none, the Job resumes when the other one ends; if that one waits for a person, decide or answer there.
    AwaitingJob,
    /// A reply answers no open question.
    ///
    /// Remedy: reply to a question that `kubectl bloomery get` shows.
    UnknownQuestion,
    /// The Job ended before it used a reply, or before it started an approved call.
    ///
    /// Remedy: none for this Job; a new Job can continue it (`spec.continues`).
    JobEnded,
    /// The Job has ended, and the held call was not started.
    ///
    /// Remedy: none.
    NotBegun,
    /// The Job is being cancelled.
    ///
    /// Remedy: none.
    Cancelling,
    /// The Skill was deleted. The Job ends as soon as its pod has ended.
    ///
    /// Remedy: none; create the Skill and the Job again.
    SkillDeleted,
    /// The Job was cancelled.
    ///
    /// Remedy: none.
    Cancelled,
    /// The namespace is suspended, so no pod runs.
    ///
    /// Remedy: remove the annotation `bloomery.dev/suspend` from the namespace.
    Suspended,
    /// As many Jobs run as a maximum of the Skill, the namespace or the cluster allows, or others hold the pod back by scheduling
    /// gates, as Kueue does. The message names the maximum or the gates.
    ///
    /// Remedy: none, the Job starts in its turn; if it should start earlier, raise the maximum, or see the queue of Kueue.
    Queued,
    /// A quota of the namespace refuses the pod. One Job of the namespace tries again at a time, and the others start in their turn.
    ///
    /// Remedy: wait until pods end, or raise the quota.
    QuotaExceeded,
    /// The Job that this Job continues has not ended, or does not exist.
    ///
    /// Remedy: wait for the end of the earlier Job; if it does not exist, delete this Job.
    ContinuedNotEnded,
    /// Another unfinished Job of the Skill, or a pod that still runs, uses the run key of the Job.
    ///
    /// Remedy: none, the Job starts when the key is free; if two Jobs are meant to run, give them different keys.
    RunKeyInUse,
    /// A backup tool restored the Job, and it has no run key, so it would run again from its beginning.
    ///
    /// Remedy: set `spec.runKey`: the UID of the Job in the backup continues that run, any other value runs the Job again.
    RestoredWithoutRunKey,
    /// The operator creates no Approval, because the admission policy for decisions is not installed as shipped.
    ///
    /// Remedy: install or upgrade the chart; it restores the policy and its binding.
    ApprovalPolicyMissing,
    /// The operator could not create the Approvals of a call. It retries.
    ///
    /// Remedy: correct what the message names, for example a quota on Approvals.
    NobodyAsked,
    /// The approver allowed the call.
    ///
    /// Remedy: none.
    Approved,
    /// The approver denied the call.
    ///
    /// Remedy: none.
    Denied,
    /// The Approval ended without a decision that counts: nobody decided in time, or the call is no longer needed.
    ///
    /// Remedy: none for this call, which counts as denied; `engine.approvalExpiry` sets the time.
    Expired,
    /// The Job resumed, and no longer waits for a person.
    ///
    /// Remedy: none.
    Resumed,
    /// The Job has ended, and no longer waits for a person.
    ///
    /// Remedy: none.
    Ended,
    /// The bindings of the Job do not fit the Skill's resources, or its `memoryScope` does not fit that of the Skill. The message names
    /// every fault.
    ///
    /// Remedy: create the Job again with correct `resources` and `memoryScope`, or correct the Skill.
    ResourcesInvalid,
    /// An object that the Job binds does not exist yet.
    ///
    /// Remedy: create the object that the message names; the Job starts then.
    ResourceNotFound,
    /// A part of the Skill does not work as written. The message names it.
    ///
    /// Remedy: correct the Skill, or the MCP server whose tools changed.
    Differs,
    /// A person has to continue the work of the Job. The outcome has the reason.
    ///
    /// Remedy: see the outcome code.
    Escalated,
}

/// A condition that a controller observed, without its transition time and generation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observation {
    /// The type of the condition.
    pub kind: ConditionType,
    /// The status: `True`, `False`, or `Unknown` if `None`.
    pub holds: Option<bool>,
    /// The reason.
    pub reason: Reason,
    /// A sentence for people: the state, the object, and what to do.
    pub message: String,
}

impl Observation {
    /// Returns a condition with the status `True`.
    pub fn holds(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self { kind, holds: Some(true), reason, message: message.into() }
    }

    /// Returns a condition with the status `False`.
    pub fn fails(kind: ConditionType, reason: Reason, message: impl Into<String>) -> Self {
        Self { kind, holds: Some(false), reason, message: message.into() }
    }
}

/// The health of an object, as kstatus defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Health {
    /// The object is in the desired state.
    Ready(Reason, String),
    /// The object changes, or waits for another object or a person.
    Reconciling(Reason, String),
    /// The object does not change until a person acts.
    Stalled(Reason, String),
}

impl Health {
    /// Returns the condition `Ready`, and `Reconciling` or `Stalled` if it applies.
    pub fn observations(self) -> Vec<Observation> {
        match self {
            Self::Ready(reason, message) => vec![Observation::holds(ConditionType::Ready, reason, message)],
            Self::Reconciling(reason, message) => vec![
                Observation::fails(ConditionType::Ready, reason, message.clone()),
                Observation::holds(ConditionType::Reconciling, reason, message),
            ],
            Self::Stalled(reason, message) => vec![
                Observation::fails(ConditionType::Ready, reason, message.clone()),
                Observation::holds(ConditionType::Stalled, reason, message),
            ],
        }
    }
}

/// Returns the new conditions of an object: those in `observed`, and those in `existing` that are not of a [`ConditionType`], because
/// other writers own them.
///
/// A transition time changes only with the status. If nothing changed, the result equals `existing`, and the caller can skip the write.
pub fn merge(existing: &[Condition], observed: &[Observation], generation: Option<i64>, now: &Time) -> Vec<Condition> {
    let mut merged: Vec<Condition> =
        observed.iter().map(|observation| to_condition(observation, existing, generation, now)).collect();
    let of_other_writers = existing.iter().filter(|old| old.type_.parse::<ConditionType>().is_err());
    merged.extend(of_other_writers.cloned());
    merged.sort_by(|a, b| a.type_.cmp(&b.type_));
    merged
}

/// Returns `existing` with one condition added or replaced. All others stay.
pub fn put(existing: &[Condition], observed: &Observation, generation: Option<i64>, now: &Time) -> Vec<Condition> {
    let name: &'static str = observed.kind.into();
    let mut merged: Vec<Condition> = existing.iter().filter(|old| old.type_ != name).cloned().collect();
    merged.push(to_condition(observed, existing, generation, now));
    merged.sort_by(|a, b| a.type_.cmp(&b.type_));
    merged
}

/// Returns the condition of a type, if there is one.
pub fn find(conditions: &[Condition], kind: ConditionType) -> Option<&Condition> {
    let name: &'static str = kind.into();
    conditions.iter().find(|condition| condition.type_ == name)
}

/// Returns whether the condition of a type has the status `True`.
pub fn is_true(conditions: &[Condition], kind: ConditionType) -> bool {
    find(conditions, kind).is_some_and(|condition| condition.status == "True")
}

/// Converts an observation to a condition. Keeps the transition time of the existing condition if the status is the same.
fn to_condition(observed: &Observation, existing: &[Condition], generation: Option<i64>, now: &Time) -> Condition {
    let status = match observed.holds {
        Some(true) => "True",
        Some(false) => "False",
        None => "Unknown",
    };
    let since =
        find(existing, observed.kind).filter(|old| old.status == status).map(|old| old.last_transition_time.clone());
    Condition {
        type_: observed.kind.to_string(),
        status: status.to_owned(),
        reason: observed.reason.to_string(),
        // The API server allows 32768 characters, but people read the message on a screen.
        message: crate::text::bounded(&observed.message, 1024),
        observed_generation: generation,
        last_transition_time: since.unwrap_or_else(|| now.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(seconds: i64) -> Time {
        serde_json::from_value(serde_json::json!(format!("2026-01-01T00:00:{seconds:02}Z"))).unwrap()
    }

    #[test]
    fn merging_the_same_observations_again_changes_nothing() {
        let seen = Health::Reconciling(Reason::Starting, "the pod was created".into()).observations();
        let first = merge(&[], &seen, Some(1), &time(1));
        assert_eq!(merge(&first, &seen, Some(1), &time(9)), first);
    }

    #[test]
    fn put_adds_or_replaces_one_condition() {
        let first = merge(&[], &Health::Ready(Reason::Succeeded, "a".into()).observations(), Some(1), &time(1));
        let stray = |message: &str| Observation::fails(ConditionType::RepliesTaken, Reason::JobEnded, message);
        let second = put(&first, &stray("x"), Some(2), &time(2));
        assert_eq!((&second[0], second.len()), (&first[0], 2));
        let third = put(&second, &stray("y"), Some(3), &time(3));
        let condition = find(&third, ConditionType::RepliesTaken).unwrap();
        assert_eq!((condition.message.as_str(), &condition.last_transition_time, third.len()), ("y", &time(2), 2));
        assert_eq!(put(&third, &stray("y"), Some(3), &time(9)), third);
    }

    #[test]
    fn a_transition_time_changes_only_with_the_status() {
        let first = merge(&[], &Health::Reconciling(Reason::Starting, "a".into()).observations(), Some(1), &time(1));
        let second = merge(&first, &Health::Stalled(Reason::Failed, "b".into()).observations(), Some(2), &time(2));
        let ready = find(&second, ConditionType::Ready).unwrap();
        assert_eq!((ready.reason.as_str(), &ready.last_transition_time), ("Failed", &time(1)));
        assert!(find(&second, ConditionType::Reconciling).is_none());
        assert_eq!(find(&second, ConditionType::Stalled).unwrap().last_transition_time, time(2));
    }

    #[test]
    fn conditions_of_other_writers_stay() {
        let foreign = Condition {
            type_: "example.com/Audited".into(),
            status: "True".into(),
            reason: "Yes".into(),
            message: String::new(),
            observed_generation: None,
            last_transition_time: time(0),
        };
        let merged = merge(
            std::slice::from_ref(&foreign),
            &Health::Ready(Reason::Ready, "ok".into()).observations(),
            None,
            &time(1),
        );
        assert!(merged.contains(&foreign));
        assert!(is_true(&merged, ConditionType::Ready));
    }
}
