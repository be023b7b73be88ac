//! The API `bloomery.dev/v1alpha1`: what people write and read with kubectl.

mod definitions;
mod job;
mod model;
mod shared;
mod skill;

pub use definitions::definitions;
pub use job::{
    Attempt, Finalization, FinalizationAttempt, FinalizationCode, FinalizationReason, GateReason, Gates, Job,
    JobResult, JobSpec, JobStatus, LlmCalls, LogPosition, PreTool, Ruling, SuggestedAction, Usage, Verdict,
};
pub use model::{Model, ModelProvider, ModelSpec, ModelStatus, SecretRef};
pub use shared::{Limits, SecretKeyRef, seconds};
pub use skill::{
    Engine, FinalizationGate, McpContainer, McpServer, McpService, OutputContract, Policy, Problem, RevisionRef, Role,
    Skill, SkillSpec, SkillStatus, ToolDeclaration, ToolPolicy,
};
