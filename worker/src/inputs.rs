//! Reads the run document from its files, and checks it against its digests.

use crate::settings::RunArgs;
use bloomery_crds::children::MAX_DEPTH;
use bloomery_crds::run::{self, JobPart, ModelEndpoint, Revision};
use bloomery_crds::v1alpha1::{Feature, Stage};
use bloomery_engine::decisions::Decisions;
use bloomery_engine::run::Run;
use bloomery_engine::validation::{allowed_effects, feature_skill};
use bloomery_redact::Redactor;
use std::path::{Path, PathBuf};

/// The error of a run document that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// A part differs from its digest, or is not valid.
    #[error(transparent)]
    Part(#[from] run::Error),
    /// A Model that the Skill or a fallback names is missing.
    #[error("the Job's part has no Model `{0}`, which the Skill or another Model names")]
    Model(String),
    /// A decision on a held call does not name the tool that the approver saw.
    #[error(
        "the decision on the call {0} does not name its tool, because the operator is of an earlier version: upgrade the operator, \
         or use the worker image of its version"
    )]
    DecisionWithoutTool(String),
    /// The secrets of the Job cannot be redacted.
    #[error("the secrets of the Job are together too large to be redacted: make them smaller")]
    Secrets,
    /// The Job's part is for another revision.
    #[error("the Job's part is for revision {expected}, but the given revision is {found}")]
    Revision {
        /// The revision that the Job's part names.
        expected: bloomery_crds::Digest,
        /// The revision that was given.
        found: bloomery_crds::Digest,
    },
}

/// The checked run document, and the engine's input that is made of it.
#[derive(Debug)]
pub struct Inputs {
    /// The compiled Skill.
    pub revision: Revision,
    /// The Job's part.
    pub part: JobPart,
    /// Redacts the secrets of the Job.
    pub redactor: Redactor,
    /// The input of the engine, made of both parts. `people` and `has_notes` are false: the caller sets `people` if people can answer
    /// questions, and the claim of an epoch sets `has_notes`.
    pub run: Run,
}

impl Inputs {
    /// Reads both parts from their files, and combines them as [`Inputs::new`] does.
    ///
    /// # Errors
    /// If a file cannot be read, differs from its digest, or has another version.
    pub fn read(args: &RunArgs, redactor: Redactor) -> Result<Self, Error> {
        let revision = run::open_revision(&text(&args.revision)?, &args.revision_digest)?;
        let part = read_job_part(args)?;
        if part.revision != args.revision_digest {
            return Err(Error::Revision { expected: part.revision, found: args.revision_digest.clone() });
        }
        Self::new(revision, part, redactor)
    }

    /// Combines both parts, and registers the files of the Job's secrets with `redactor`.
    ///
    /// # Errors
    /// If a Model is missing, a decision names no tool, or the secrets cannot be redacted.
    pub fn new(revision: Revision, part: JobPart, redactor: Redactor) -> Result<Self, Error> {
        let model = |name: &str| {
            part.models.iter().find(|model| model.name == name).ok_or_else(|| Error::Model(name.to_owned()))
        };
        let context_window = model(revision.spec.model_name(Stage::Plan))?.context_window;
        for name in revision.spec.model_names() {
            for fallback in &model(name)?.fallback {
                model(fallback)?;
            }
        }
        if let Some(decision) = part.approvals.iter().find(|decision| decision.tool.is_none()) {
            return Err(Error::DecisionWithoutTool(decision.call.clone()));
        }
        redactor.watch_job(&part);
        if redactor.is_too_large() {
            return Err(Error::Secrets);
        }
        let max_output = part.models.iter().map(ModelEndpoint::max_output).max().unwrap_or_default();
        let run = Run {
            run_key: call_key_base(&part, &revision.skill),
            job: part.named_run_key.then(|| part.job.uid.clone()),
            skill_name: revision.skill.clone(),
            skill: revision.spec.clone(),
            revision: part.revision.clone(),
            goal: redactor.redact_text(&part.goal).into_owned(),
            limits: part.limits,
            resources: part.resources.clone(),
            context_window,
            continues: part.continues.as_ref().map(|continued| continued.name.clone()),
            people: false,
            pins: part.pins.clone(),
            tenant_tools: part.tenant_tools.iter().cloned().collect(),
            allowed_effects: None,
            decisions: match &part.report {
                Some(_) => Decisions::Given {
                    decisions: part.approvals.clone(),
                    void: part.void_approvals.clone(),
                    asked: part.asked.clone(),
                },
                // In local mode there is no operator.
                None => Decisions::Log,
            },
            depth: part.depth,
            can_have_children: part.report.is_some() && part.depth < MAX_DEPTH,
            has_notes: false,
            max_output,
        };
        Ok(Self { revision, part, redactor, run })
    }

    /// Combines both parts for the test of a feature: a conversation with the scenario as its goal, in which the Skill is that of
    /// [`feature_skill`], and only allowed tools may have an effect. It has no children, because a child is not bound to these tools. `test`
    /// is a number that no other test of the Job has.
    ///
    /// # Errors
    /// As [`Inputs::new`].
    pub fn for_feature(
        revision: Revision,
        part: JobPart,
        (feature, test): (&Feature, u64),
        redactor: Redactor,
    ) -> Result<Self, Error> {
        let revision = Revision { spec: feature_skill(&revision.spec, feature), ..revision };
        let part = JobPart { goal: feature.test_scenario.clone(), ..part };
        let mut inputs = Self::new(revision, part, redactor)?;
        inputs.run.allowed_effects = Some(allowed_effects(feature));
        inputs.run.can_have_children = false;
        // The tests of a Job have the same call ids, and a server may ignore a call whose key it knows.
        inputs.run.run_key = format!("{}/{}/{test}", inputs.run.run_key, feature.name);
        Ok(inputs)
    }

    /// Returns the source of the log's events, which identifies the conversation.
    pub fn source(&self) -> String {
        let job = &self.part.job;
        format!("/namespaces/{}/skilljobs/{}/{}", job.namespace, job.name, self.part.run_key)
    }
}

/// Reads the Job's part from its file.
///
/// # Errors
/// If the file cannot be read, differs from its digest, or has another version.
pub fn read_job_part(args: &RunArgs) -> Result<JobPart, Error> {
    Ok(run::open_job_part(&text(&args.job)?, &args.job_digest)?)
}

/// Returns the unique text that the keys of tool calls are made of. MCP servers that deduplicate calls by key would ignore the calls of a
/// second run with the same text.
///
/// The UID of a Job is unique, also as the named run key of a restored Job. Any other run key is unique within a Skill of a namespace. In
/// local mode a person may use a run key again after deleting its log, so the UID counts.
fn call_key_base(part: &JobPart, skill: &str) -> String {
    match &part.run_key {
        _ if !part.named_run_key => part.job.uid.clone(),
        uid if is_uid(uid) => uid.clone(),
        key => format!("{}/{skill}/{key}", part.job.namespace),
    }
}

/// Returns whether a text has the form of a UID of Kubernetes: five groups of hexadecimal digits.
fn is_uid(text: &str) -> bool {
    let groups: Vec<&str> = text.split('-').collect();
    let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
    lengths == [8, 4, 4, 4, 12] && groups.concat().bytes().all(|byte| byte.is_ascii_hexdigit())
}

pub(crate) fn text(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::File { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::shop::Refund;
    use crate::fixture::stand::Stand;
    use bloomery_crds::run::GivenDecision;
    use bloomery_crds::v1alpha1::{ApprovalVerdict, FinalizationGate};
    use serde_json::json;

    #[tokio::test]
    async fn secrets_that_cannot_be_redacted_are_an_error() {
        let stand = Stand::new(Vec::new(), Refund::Answers).await;
        let error = Inputs::read(&stand.args(1), Redactor::too_large()).unwrap_err().to_string();
        assert!(error.contains("together too large"), "{error}");
    }

    #[tokio::test]
    async fn a_stage_without_its_model_is_an_error() {
        let mut stand = Stand::new(Vec::new(), Refund::Answers).await;
        let inputs = Inputs::read(&stand.args(1), Redactor::default()).unwrap();
        assert_eq!(inputs.run.context_window, 128_000);
        let gate = FinalizationGate { model: Some("fast".into()), ..FinalizationGate::default() };
        stand.skill.engine.get_or_insert_default().finalization_gate = Some(gate);
        let error = Inputs::read(&stand.args(2), Redactor::default()).unwrap_err().to_string();
        assert_eq!(error, "the Job's part has no Model `fast`, which the Skill or another Model names");
    }

    #[tokio::test]
    async fn jobs_of_one_named_run_key_have_the_same_call_keys() {
        let mut stand = Stand::new(Vec::new(), Refund::Answers).await;
        let run = |stand: &Stand| Inputs::read(&stand.args(1), Redactor::default()).unwrap().run;
        let unnamed = run(&stand);
        assert_eq!(unnamed.job, None);
        stand.is_key_named = true;
        let first = run(&stand);
        assert_eq!(first.run_key, "acme/cs-tier-1/k-1");
        stand.change_job();
        let second = run(&stand);
        assert_eq!(second.run_key, first.run_key);
        assert!(second.job.is_some() && second.job != first.job);
    }

    /// A restored Job names the UID of the Job in the backup, whose calls have keys of that UID.
    #[test]
    fn a_uid_as_a_named_run_key_gives_the_call_keys_of_that_job() {
        for (key, is) in [
            ("5f0c1de2-7f0c-4f43-9be0-2f2f6f8a9a11", true),
            ("5f0c1de2-7f0c-4f43-9be0-2f2f6f8a9a1", false),
            ("5f0c1de2-7f0c-4f43-9be0-2f2f6f8a9a1x", false),
            ("nightly", false),
        ] {
            assert_eq!(is_uid(key), is, "{key}");
        }
    }

    #[tokio::test]
    async fn the_test_of_a_feature_has_its_scenario_as_the_goal() {
        let stand = Stand::new(Vec::new(), Refund::Answers).await;
        let Inputs { revision, part, .. } = Inputs::read(&stand.args(1), Redactor::default()).unwrap();
        let feature =
            json!({"name": "x", "testScenario": "When asked", "expectedResult": "Says so", "allow": ["notify"]});
        let feature = serde_json::from_value(feature).unwrap();
        let inputs = Inputs::for_feature(revision, part, (&feature, 1), Redactor::default()).unwrap();
        assert_eq!((inputs.run.goal.as_str(), inputs.part.goal.as_str()), ("When asked", "When asked"));
        assert_eq!(inputs.run.skill.acceptance_criteria, ["Says so"]);
        assert_eq!(inputs.run.skill, inputs.revision.spec, "the worker's tools read the same Skill");
        assert_eq!(inputs.run.allowed_effects, Some(vec!["notify".to_owned()]));
        assert!(!inputs.run.can_have_children, "a child would not be bound to these tools");
        assert!(inputs.run.run_key.ends_with("/x/1"), "each test has its own call keys: {}", inputs.run.run_key);
    }

    #[tokio::test]
    async fn a_decision_without_a_tool_is_an_error() {
        let mut stand = Stand::new(Vec::new(), Refund::Answers).await;
        let decision = GivenDecision {
            call: "7-0".into(),
            tool: None,
            digest: bloomery_crds::Digest::of_bytes(b"arguments"),
            approver: "supervisor".into(),
            verdict: ApprovalVerdict::Approve,
            by: "jane".into(),
            reason: None,
        };
        stand.decided = vec![decision];
        let error = Inputs::read(&stand.args(2), Redactor::default()).unwrap_err().to_string();
        assert!(error.contains("the call 7-0") && error.contains("upgrade the operator"), "{error}");
    }
}
