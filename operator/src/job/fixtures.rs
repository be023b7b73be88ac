//! Values for tests. Each value is unique, so that a test fails if two are swapped.

pub(crate) mod api;
pub(crate) mod log_lines;
pub(crate) mod open;

use super::paths;
use super::validate::{BoundResources, Continued, Filesystem, ValidAttempt};
use crate::approval;
use crate::approval::policy::PolicyState;
use crate::network::destination::Destination;
use crate::settings::{LogFormat, McpSettings, PodDefaults, PullPolicy, SkillDirectorySettings, WorkerSettings};
use crate::status::StatusStamp;
use bloomery_crds::Digest;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::names;
use bloomery_crds::outcome::{Outcome, OutcomeCode, Phase};
use bloomery_crds::report::{HeldCallDetails, PodEnd, Projection, Report, TerminationMessage};
use bloomery_crds::run::{
    BoundResource, GivenDecision, GivenReply, JobIdentity, KeyFile, ModelEndpoint, ReportEndpoint, ResourceSource,
};
use bloomery_crds::v1alpha1::{
    Approval, ApprovalDecision, ApprovalStatus, ApprovalVerdict, AskedQuestion, Attempt, CaRef, ConfigMapKeyRef,
    CountedDecision, GateReason, Gates, HeldCall, HoldRule, Job, JobSpec, JobStatus, LogPosition, ModelProvider,
    ResourceType, RevisionRef, SecretKeyRef, Usage, WaitingFor,
};
use k8s_openapi::api::core::v1::{ContainerState, ContainerStateTerminated, ContainerStatus, Pod, PodStatus};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use k8s_openapi::jiff::{SignedDuration, Timestamp};
use std::time::Duration;

/// The UID of the Job.
pub(crate) const UID: &str = "01234567-89ab-cdef-0123-456789abcdef";

/// The start time of the fixtures plus this number of seconds.
pub(crate) fn at(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap() + SignedDuration::from_secs(seconds)
}

/// A stamp of that time, for generation 3.
pub(crate) fn stamp(seconds: i64) -> StatusStamp {
    StatusStamp { now: Time(at(seconds)), generation: Some(3) }
}

/// The revision that the Job runs on.
pub(crate) fn revision() -> RevisionRef {
    RevisionRef { name: "cs-tier-1-4f1c9a2e".into(), digest: Digest::of_bytes(b"revision") }
}

/// The Job `refund`, without a status.
pub(crate) fn job() -> Job {
    let spec = JobSpec { skill: "cs-tier-1".into(), goal: "Refund order A-17".into(), ..JobSpec::default() };
    let mut job = Job::new("refund", spec);
    job.metadata.namespace = Some("acme".into());
    job.metadata.uid = Some(UID.into());
    job.metadata.generation = Some(3);
    job.metadata.resource_version = Some("41".into());
    job
}

/// The wait of a Job with two open questions, since this second.
pub(crate) fn asked(since: i64) -> WaitingFor {
    let question =
        |id: &str, text: &str| AskedQuestion { id: id.into(), text: text.into(), ..AskedQuestion::default() };
    WaitingFor {
        questions: vec![question("q-1", "Which order?"), question("q-2", "Which shop?")],
        since: Some(Time(at(since))),
        ..WaitingFor::default()
    }
}

fn given_decision() -> GivenDecision {
    GivenDecision {
        call: "c-7".into(),
        tool: Some("process_refund".into()),
        digest: Digest::of_bytes(b"arguments"),
        approver: "supervisor".into(),
        verdict: ApprovalVerdict::Approve,
        by: "jane@acme.io".into(),
        reason: Some("it is in order".into()),
    }
}

/// The validated second attempt of the Job.
pub(crate) fn valid_attempt() -> ValidAttempt {
    let ca = ConfigMapKeyRef { name: "corporate".into(), key: "ca.crt".into() };
    ValidAttempt {
        job: JobIdentity { namespace: "acme".into(), name: "refund".into(), uid: UID.into() },
        run_key: None,
        owner: owner(),
        goal: "Refund order A-17".into(),
        validates: false,
        number: 2,
        after_disruption: true,
        skill: "cs-tier-1".into(),
        revision: revision(),
        limits: EffectiveLimits { steps: 40, tool_calls: 90, tokens: 150_000, duration_seconds: 1200 },
        lowered_limits: Vec::new(),
        remaining_seconds: 1100,
        models: vec![
            model("default", Some(key("llm", "token"))),
            model("fast", Some(key("llm", "fast"))),
            model("kind", Some(key("other", "token"))),
            ModelEndpoint {
                provider: ModelProvider::Anthropic,
                max_output_tokens: Some(2_000),
                ca: paths::ca_file(&CaRef { config_map_key_ref: Some(ca.clone()), ..CaRef::default() }),
                proxy: Some("http://proxy.example:3128".into()),
                fallback: vec!["fast".into(), "kind".into()],
                ..model("claude", None)
            },
        ],
        external_mcp: None,
        sidecars: Vec::new(),
        connects_to: [("api.openai.com", 443), ("proxy.example", 3128)]
            .map(|(host, port)| Destination { host: host.into(), port })
            .into(),
        network_policy: None,
        shared_hosts: Vec::new(),
        denied_ranges: Vec::new(),
        pod: None,
        bound: bound_resources(),
        log: Some(LogPosition { path: format!("jobs/{UID}"), events: 17, head: Digest::of_bytes(b"line 17") }),
        approvals: vec![given_decision()],
        void_approvals: None,
        asked: Vec::new(),
        approved_call: None,
        continues: Some(Continued { name: "refund-0".into(), uid: "uid-0".into(), run_key: None }),
        memory_scope: None,
        pins: None,
        tenant_tools: None,
        depth: 1,
        children: Vec::new(),
        child_wait_seconds: None,
        replies: vec![GivenReply { nth: 2, question: Some("q-1".into()), text: "A-17".into() }],
        report: ReportEndpoint {
            url: "https://bloomery-operator.bloomery.svc:8443/v1/reports".into(),
            ca: "-----BEGIN CERTIFICATE-----\n".into(),
        },
        memory_single_node: true,
    }
}

fn bound_resources() -> BoundResources {
    BoundResources {
        resources: vec![
            resource("codebase", ResourceType::Filesystem, mount("codebase", false)),
            resource("docs", ResourceType::ApiEndpoint, ResourceSource::Value("https://docs.example.com".into())),
            resource("ledger", ResourceType::ConnectionString, ResourceSource::Secret(key("ledger", "dsn"))),
            resource("style", ResourceType::Filesystem, mount("style", true)),
            resource("token", ResourceType::Credential, ResourceSource::Secret(key("other", "git"))),
        ],
        filesystems: vec![
            Filesystem { sub_path: Some("app".into()), ..filesystem("codebase", "src", false) },
            filesystem("style", "guides", true),
        ],
    }
}

fn model(name: &str, api_key: Option<KeyFile>) -> ModelEndpoint {
    ModelEndpoint {
        name: name.into(),
        provider: ModelProvider::Openai,
        model: format!("gpt-5-{name}"),
        base_url: "https://api.openai.com/v1".into(),
        timeout_seconds: 120,
        context_window: 64_000,
        max_output_tokens: None,
        api_key,
        ca: None,
        proxy: None,
        fallback: Vec::new(),
    }
}

fn key(name: &str, key: &str) -> KeyFile {
    paths::key_file(&SecretKeyRef { name: name.into(), key: key.into() })
}

fn resource(name: &str, kind: ResourceType, source: ResourceSource) -> BoundResource {
    BoundResource { name: name.into(), kind, source }
}

fn mount(name: &str, read_only: bool) -> ResourceSource {
    ResourceSource::Mount { path: paths::resource(name), read_only }
}

/// A bound file system whose claim only one node can mount.
pub(crate) fn filesystem(name: &str, claim: &str, read_only: bool) -> Filesystem {
    Filesystem { name: name.into(), claim: claim.into(), sub_path: None, read_only, single_node: true }
}

/// A held call with two approvers.
pub(crate) fn held_call() -> HeldCall {
    HeldCall {
        id: "c-7".into(),
        tool: "process_refund".into(),
        digest: Digest::of_bytes(b"arguments"),
        approvers: vec!["supervisor".into(), "finance".into()],
        reason: "amount > 500 needs approval (spec.policy.approvals[0])".into(),
    }
}

/// The details of that call in a report.
pub(crate) fn hold() -> HeldCallDetails {
    let rule = |text: &str, approver: &str| HoldRule {
        layer: GateReason::Approval,
        text: text.into(),
        approver: Some(approver.into()),
    };
    HeldCallDetails {
        call: "c-7".into(),
        arguments: "arguments".into(),
        rules: vec![rule("amount > 500", "supervisor"), rule("amount > 800", "finance")],
        goal: "Refund order A-17".into(),
        events: vec!["2027-01-15T08:00:00Z    9 tool.held           c-7".into()],
        expiry_seconds: None,
    }
}

/// The stored Approval of that call for an approver. It expires after a day.
pub(crate) fn approval(approver: &str) -> Approval {
    let approvals =
        approval::build::approvals(&job(), &held_call(), &hold(), (Duration::from_hours(24), at(0)), &policy_digest())
            .unwrap();
    let mut approval = approvals.into_iter().find(|approval| approval.spec.approver == approver).unwrap();
    approval.metadata.uid = Some(format!("{approver}-uid"));
    approval.metadata.generation = Some(1);
    approval
}

/// The digest of the admission policy and binding of [`api::FakeApi::install_policies`].
pub(crate) fn policy_digest() -> Digest {
    match policy_in_force() {
        PolicyState::InForce(guard) => guard.digest,
        PolicyState::Missing(why) => panic!("{why}"),
    }
}

/// The state of that policy: in force.
pub(crate) fn policy_in_force() -> PolicyState {
    approval::policy::in_force(&api::shipped_policies(), api::POLICIES, api::BINDINGS)
}

/// The Approval, decided by jane.
pub(crate) fn decided(mut approval: Approval, verdict: ApprovalVerdict) -> Approval {
    let decision = ApprovalDecision { verdict, by: "jane@acme.io".into(), reason: Some("it is in order".into()) };
    approval.spec.decision = Some(decision);
    approval
}

/// The Approval, decided and counted.
pub(crate) fn counted(approval: Approval, verdict: ApprovalVerdict) -> Approval {
    let mut approval = decided(approval, verdict);
    let counted = CountedDecision { verdict, at: Time(at(1)) };
    approval.status = Some(ApprovalStatus { counted: Some(counted), ..ApprovalStatus::default() });
    approval
}

fn owner() -> OwnerReference {
    crate::owned::owner_reference(&job()).unwrap()
}

/// The settings of MCP servers.
pub(crate) fn mcp_settings() -> McpSettings {
    McpSettings {
        pod: serde_json::from_value(serde_json::json!({ "imagePullSecrets": [{ "name": "pull-mcp" }] })).unwrap(),
        resources: serde_json::from_value(serde_json::json!({ "limits": { "memory": "128Mi" } })).unwrap(),
        max_resources: serde_json::from_value(serde_json::json!({ "cpu": "3" })).unwrap(),
    }
}

/// The settings of worker pods.
pub(crate) fn worker_settings() -> WorkerSettings {
    WorkerSettings {
        image: "registry.example/bloomery/worker:1".into(),
        pull_policy: PullPolicy::Never,
        resources: serde_json::from_value(serde_json::json!({ "limits": { "memory": "256Mi" } })).unwrap(),
        run_as_user: 1001,
        run_as_group: 1002,
        fs_group: 1003,
        uids_from_platform: false,
        endpoint_ranges: Vec::new(),
        pod: PodDefaults::default(),
        log_format: LogFormat::Text,
        secret_wait: std::time::Duration::from_mins(15),
        pod_retention: std::time::Duration::from_mins(10),
        skill_directory: SkillDirectorySettings {
            focus_cache_size: 7_000,
            log_max_age: std::time::Duration::from_hours(5),
            log_max_count: 6,
            log_max_size: 8_000,
        },
    }
}

/// The UID of the pod of an attempt.
pub(crate) fn pod_uid(attempt: u32) -> String {
    format!("pod-uid-{attempt}")
}

/// The pod of an attempt, created at second 0, in this phase.
pub(crate) fn pod(attempt: u32, phase: &str) -> Pod {
    let mut pod = Pod::default();
    pod.metadata.name = Some(names::worker_pod("refund", attempt, UID));
    pod.metadata.namespace = Some("acme".into());
    pod.metadata.uid = Some(pod_uid(attempt));
    pod.metadata.creation_timestamp = Some(Time(at(0)));
    pod.metadata.owner_references = Some(vec![owner()]);
    let mut labels = crate::owned::labels("worker");
    labels.insert(names::LABEL_JOB.to_owned(), "refund".to_owned());
    labels.insert(names::LABEL_ATTEMPT.to_owned(), attempt.to_string());
    pod.metadata.labels = Some(labels);
    pod.status = Some(PodStatus { phase: Some(phase.to_owned()), ..PodStatus::default() });
    pod
}

/// The pod with the seal of the operator of [`api::FakeApi`].
pub(crate) fn sealed(pod: Pod) -> Pod {
    let seals = crate::pod_seals::PodSeals::default();
    seals.set_keys([api::SEAL_KEY].into_iter());
    seals.sealed(pod)
}

/// The pod of an attempt that ended at this second with this message.
pub(crate) fn ended_pod(attempt: u32, seconds: i64, message: Option<TerminationMessage>) -> Pod {
    let mut pod = pod(attempt, "Failed");
    let terminated = ContainerStateTerminated {
        exit_code: 137,
        reason: Some("OOMKilled".into()),
        finished_at: Some(Time(at(seconds))),
        message: message.map(|message| message.to_text().unwrap()),
        ..ContainerStateTerminated::default()
    };
    pod.status.as_mut().unwrap().container_statuses =
        Some(vec![container(ContainerState { terminated: Some(terminated), ..ContainerState::default() })]);
    pod
}

/// The status of the worker's container.
pub(crate) fn container(state: ContainerState) -> ContainerStatus {
    ContainerStatus {
        name: "worker".into(),
        image: "worker:1".into(),
        ready: state.running.is_some(),
        state: Some(state),
        ..ContainerStatus::default()
    }
}

/// The termination message of an attempt.
pub(crate) fn message(attempt: u32, end: PodEnd, outcome: Option<OutcomeCode>) -> TerminationMessage {
    TerminationMessage {
        job: UID.into(),
        attempt,
        epoch: Some(u64::from(attempt)),
        end,
        outcome: outcome.map(|code| Outcome::new(code, "as the pod reported")),
        log: Some(log(9)),
        usage: Some(Usage { tool_calls: 4, ..Usage::default() }),
        questions: Vec::new(),
        replies_heard: 0,
        acked: false,
    }
}

/// A log with this number of events.
pub(crate) fn log(events: u64) -> LogPosition {
    LogPosition { path: format!("jobs/{UID}"), events, head: Digest::of_bytes(&events.to_be_bytes()) }
}

/// The status of a Job whose attempt is in this phase.
pub(crate) fn status(attempt: u32, phase: Phase) -> JobStatus {
    JobStatus {
        observed_generation: Some(3),
        phase: Some(phase),
        attempt: Some(Attempt {
            number: attempt,
            pod: names::worker_pod("refund", attempt, UID),
            pod_uid: Some(pod_uid(attempt)),
            ..Attempt::default()
        }),
        skill_revision: Some(revision()),
        start_time: Some(Time(at(0))),
        ..JobStatus::default()
    }
}

/// A report of an attempt, with its epoch, the number of events in its log, and its phase.
pub(crate) fn report(attempt: u32, epoch: u64, events: u64, phase: Phase) -> Report {
    let outcome = phase.is_terminal().then(|| {
        let code = if phase == Phase::Succeeded { OutcomeCode::Succeeded } else { OutcomeCode::GateFailed };
        Outcome::new(code, "as reported")
    });
    Report {
        memory: None,
        job: JobIdentity { namespace: "acme".into(), name: "refund".into(), uid: UID.into() },
        attempt,
        epoch,
        projection: Projection {
            phase,
            outcome,
            result: None,
            gates: Gates::default(),
            features: Vec::new(),
            workflows: Vec::new(),
            waiting_for: None,
            tool_names: Vec::new(),
            replies_heard: 0,
            stray_replies: Vec::new(),
            remarks: Vec::new(),
            tools_changed: false,
            usage: Usage { tool_calls: u32::try_from(events).unwrap(), ..Usage::default() },
            log: log(events),
        },
        waiting: None,
        hold: None,
        children: Vec::new(),
        wait_seconds: 0,
        end: None,
    }
}
