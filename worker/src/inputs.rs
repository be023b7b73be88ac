//! The run document, read from its files and checked against its seals.

use crate::settings::RunArgs;
use bloomery_crds::run::{self, JobPart, ModelEndpoint, Revision};
use bloomery_crds::v1alpha1::Stage;
use bloomery_engine::run::Run;
use bloomery_redact::Redactor;
use std::path::{Path, PathBuf};

/// Why the run document cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file of it cannot be read.
    #[error("cannot read {}: {source}", .path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A part of it is not what the operator wrote.
    #[error(transparent)]
    Part(#[from] run::Error),
    /// A stage of the Skill has no model, or a model not the fallback that it names.
    #[error("the Job's part has no Model `{0}`, which the Skill or another Model names")]
    Model(String),
    /// The secrets of the Job cannot be kept out of texts.
    #[error("the secrets of the Job are too large together to be kept out of texts: make them smaller")]
    Secrets,
    /// The two parts do not belong together.
    #[error("the Job's part is for the revision {expected}, and the revision is {found}")]
    Revision {
        /// What the Job's part names.
        expected: bloomery_crds::Digest,
        /// What was handed over.
        found: bloomery_crds::Digest,
    },
}

/// Everything that a worker is told.
#[derive(Debug)]
pub struct Inputs {
    /// The compiled Skill.
    pub revision: Revision,
    /// The Job's part.
    pub part: JobPart,
    /// Keeps the secrets of the Job out of whatever is made of it.
    pub redactor: Redactor,
    /// How many tokens the model of the main loop takes.
    context_window: u64,
    /// Whether there are people who answer questions while it runs: nobody, unless somebody says so.
    pub people: bool,
    /// How many tokens an answer of any model may have.
    max_output: u64,
}

impl Inputs {
    /// Reads both parts, as [`Inputs::new`] puts them together.
    ///
    /// # Errors
    /// If a file cannot be read, differs from its digest in as much as a byte, or is of another version.
    pub fn read(args: &RunArgs, redactor: Redactor) -> Result<Self, Error> {
        let revision = run::open_revision(&text(&args.revision)?, &args.revision_digest)?;
        let part = run::open_job_part(&text(&args.job)?, &args.job_digest)?;
        if part.revision != args.revision_digest {
            return Err(Error::Revision { expected: part.revision, found: args.revision_digest.clone() });
        }
        Self::new(revision, part, redactor)
    }

    /// Puts both parts together, however they came here; from here on, `redactor` watches the secrets that they name.
    ///
    /// # Errors
    /// If a stage of the Skill has no model, or the secrets cannot be kept out of texts.
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
        redactor.watch_job(&part);
        if redactor.is_blind() {
            return Err(Error::Secrets);
        }
        let max_output = part.models.iter().map(ModelEndpoint::max_output).max().unwrap_or_default();
        Ok(Self { revision, part, redactor, context_window, people: false, max_output })
    }

    /// What the engine is told: the run document without its transport.
    pub fn run(&self) -> Run {
        Run {
            // On a cluster they are one. Where a person names the key, another Job may have had it: servers that keep calls apart by
            // their keys would take this one's calls for those.
            run_key: self.part.job.uid.clone(),
            skill_name: self.revision.skill.clone(),
            skill: self.revision.spec.clone(),
            revision: self.part.revision.clone(),
            goal: self.redactor.text(&self.part.goal).into_owned(),
            limits: self.part.limits,
            resources: self.part.resources.clone(),
            context_window: self.context_window,
            continues: self.part.continues.as_ref().map(|continued| continued.name.clone()),
            people: self.people,
            // Who claims an epoch looks for them.
            has_notes: false,
            max_output: self.max_output,
        }
    }

    /// Names the conversation in its log.
    pub fn source(&self) -> String {
        let job = &self.part.job;
        format!("/namespaces/{}/skilljobs/{}/{}", job.namespace, job.name, self.part.run_key)
    }
}

fn text(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::File { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::shop::Refund;
    use crate::fixture::stand::Stand;
    use bloomery_crds::v1alpha1::FinalizationGate;

    #[tokio::test]
    async fn nothing_is_begun_where_secrets_cannot_be_looked_for() {
        let stand = Stand::new(Vec::new(), Refund::Answers).await;
        let error = Inputs::read(&stand.args(1), Redactor::blind()).unwrap_err().to_string();
        assert!(error.contains("too large together"), "{error}");
    }

    #[tokio::test]
    async fn a_stage_without_its_model_is_refused_before_anything_begins() {
        let mut stand = Stand::new(Vec::new(), Refund::Answers).await;
        let inputs = Inputs::read(&stand.args(1), Redactor::default()).unwrap();
        assert_eq!(inputs.run().context_window, 128_000);
        let gate = FinalizationGate { model: Some("fast".into()), ..FinalizationGate::default() };
        stand.skill.engine.get_or_insert_default().finalization_gate = Some(gate);
        let error = Inputs::read(&stand.args(2), Redactor::default()).unwrap_err().to_string();
        assert_eq!(error, "the Job's part has no Model `fast`, which the Skill or another Model names");
    }
}
