//! The custom resources of the API `bloomery.dev/v1alpha1`.
//!
//! `crds/yaml` is generated from these types, so their doc comments are what `kubectl explain` prints.

mod approval;
mod definitions;
mod job;
mod model;
mod shared;
mod skill;

pub use approval::{
    Approval, ApprovalDecision, ApprovalSpec, ApprovalStatus, ApprovalVerdict, CountedDecision, HoldRule,
};
pub use definitions::{
    CRD_VERSION, CRD_VERSION_ANNOTATION, definitions, kinds, schema_of, schema_text_of, schema_without_descriptions,
    spec_schema_of,
};
pub use job::{
    ApprovedCall, AskedCall, AskedQuestion, Attempt, Binding, CallNotStarted, ChildJob, ChildrenUsage, ClaimBinding,
    DetectedIntent, FeatureResult, Finalization, FinalizationAttempt, FinalizationCode, FinalizationReason, GateReason,
    Gates, GivenReply, HeldCall, Job, JobMode, JobResult, JobSpec, JobStatus, LlmCalls, LogPosition, ModelUsage,
    ParentJob, PreTool, Reply, RequestedChild, Ruling, SuggestedAction, Tokens, TokensByStage, ToolName, Usage,
    Verdict, WaitingFor, WorkflowProgress,
};
pub use model::{CaRef, Model, ModelProvider, ModelSpec, ModelStatus, SecretRef};
pub(crate) use shared::is_zero;
pub use shared::{ConfigMapKeyRef, Limits, SecretKeyRef, whole_seconds};
pub use skill::{
    ApprovalAction, ApprovalRule, BankUse, CALL_HEADERS, CallLimit, CallPolicy, Context, CoreNote, DirectoryUsage,
    EffectPolicy, EndpointAuth, EndpointRule, Engine, Entity, Feature, FeatureExtension, FeatureStatus,
    FinalizationGate, FoundTools, Guardrails, Intent, IntentDetection, Intents, LimitScope, ListSource, McpBinding,
    McpContainer, McpEgress, McpHeader, McpHealth, McpScope, McpServer, McpService, McpStatus, McpTransport, Memory,
    MemoryUsage, Method, OutOfDomain, OutOfDomainAction, OutputContract, OutputField, PassCriteria, PodField,
    PodSettings, Pods, Policy, Problem, ReclaimPolicy, ReplyPolisher, RequireFor, ResourceDeclaration, ResourceType,
    RevisionRef, Role, Scripts, Skill, SkillSpec, SkillStatus, Stage, StepEvidence, StepExpectation, ToolDeclaration,
    ToolInput, ToolOutput, ToolPolicy, ToolSelection, Validation, ValueType, VerifiedTools, When, Workflow,
    is_reserved_header,
};
