//! The conversations that test features.

use super::plan::{Plan, TestedSkill};
use super::scratch::Scratch;
use crate::args::ValidateArgs;
use crate::error::Error;
use crate::local::run_document::{JobParameters, RunDocument};
use crate::local::skill_directory::SkillDirectory;
use crate::local::writer::unique_writer;
use crate::run::screen::Screen;
use bloomery_crds::limits::EffectiveLimits;
use bloomery_crds::v1alpha1::Feature;
use bloomery_embed::run::epoch::LocalEpoch;
use bloomery_embed::run::{mcp_environment, prepare};
use bloomery_engine::validation::{self, FeatureVerdict};
use bloomery_redact::Redactor;
use bloomery_worker::driver::{NoChildren, Nobody};
use bloomery_worker::inputs::Inputs;
use bloomery_worker::printer::{Format, Printer};
use bloomery_worker::stop::Stop;
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// The conversations of a validation.
#[derive(Debug)]
pub struct Conversations<'a> {
    plan: &'a Plan,
    scratch: &'a Scratch,
    patience: Duration,
    allows_scripts: bool,
    screen: &'a Screen,
    redactor: &'a Redactor,
    stop: Stop,
    writer: String,
}

/// The result of a test.
#[derive(Debug)]
pub struct Test {
    /// The verdict.
    pub verdict: FeatureVerdict,
    /// The number of tokens.
    pub tokens: u64,
    /// The time that it took.
    pub time: Duration,
    /// The directory of the log, if it is kept.
    pub log: Option<PathBuf>,
}

impl Test {
    /// Returns the result of a feature whose script may not run on this machine.
    fn without_script(script: &str) -> Self {
        let reason =
            format!("Its script {script} does not run: --allow-scripts runs scripts on this machine, as your user.");
        Self {
            verdict: FeatureVerdict { passed: false, score: None, reason },
            tokens: 0,
            time: Duration::ZERO,
            log: None,
        }
    }
}

impl<'a> Conversations<'a> {
    /// Prepares the conversations. They share a screen and the secrets that are redacted.
    pub fn new(
        plan: &'a Plan,
        scratch: &'a Scratch,
        args: &ValidateArgs,
        screen: &'a Screen,
        redactor: &'a Redactor,
    ) -> Self {
        Self {
            plan,
            scratch,
            patience: Duration::from_secs(args.patience),
            allows_scripts: args.allow_scripts,
            screen,
            redactor,
            stop: Stop::default(),
            writer: unique_writer(),
        }
    }

    /// Tests a feature once, in a new memory. A feature whose script may not run fails without a conversation.
    ///
    /// # Errors
    /// If the memory cannot be written, or the model or the tools cannot be used.
    pub async fn test(&self, skill: &TestedSkill, feature: &Feature) -> Result<Test, Error> {
        if let Some(script) = feature.script().filter(|_| !self.allows_scripts) {
            return Ok(Test::without_script(script));
        }
        let began = Instant::now();
        let key = prepare::new_key();
        let name = format!("{}.{}.{key}", skill.revision.skill, feature.name);
        let directory = SkillDirectory::new(&self.scratch.dir, &name);
        directory.open(&self.writer)?;
        let RunDocument { revision, part, program } = self.document(skill, feature, &key)?;
        if let Some(program) = &program {
            mcp_environment::redact_values(program, self.redactor);
        }
        let inputs = Inputs::for_feature(revision, part, (feature, 1), self.redactor.clone())
            .map_err(|error| Error::usage(error.to_string()))?;
        let epoch = LocalEpoch {
            inputs: &inputs,
            skill: None,
            program: program.as_ref(),
            allows_scripts: self.allows_scripts,
            directory: &directory,
            other_memories: &[],
            writer: &self.writer,
            patience: self.patience,
            people: &Nobody,
            children: &NoChildren,
            view: self.screen,
            stop: &self.stop,
        };
        let printer = Printer::new(Format::Text, Box::new(io::sink()));
        let end = Box::pin(epoch.run(printer, || {})).await?;
        let Some(end) = end else {
            return Err(Error::failed(format!("another process writes to {}", directory.dir.display())));
        };
        Ok(Test {
            verdict: validation::verdict(feature, &end.projection, &end.scripts),
            tokens: end.projection.usage.tokens(),
            time: began.elapsed(),
            log: self.scratch.is_kept.then(|| directory.log(&key)),
        })
    }

    /// Returns the parameters of a conversation. They are never stored, because a test is never resumed.
    fn document(&self, skill: &TestedSkill, feature: &Feature, key: &str) -> Result<RunDocument, Error> {
        let TestedSkill { revision, program, resources, .. } = skill;
        let parameters = JobParameters {
            job: prepare::identity(None, key),
            goal: feature.test_scenario.clone(),
            limits: EffectiveLimits::resolve(revision.spec.limits(), self.plan.limits.as_ref()),
            models: self.plan.models.endpoints.clone(),
            resources: resources.clone(),
            continues: None,
            memory_scope: None,
        };
        Ok(RunDocument::new(revision.clone(), parameters, program.clone())?)
    }
}
