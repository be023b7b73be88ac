//! Runs one epoch of a conversation: claims it, drives the conversation until it ends or has to stop, and writes the Job's record.
//! Worker pods and local mode use it.

use crate::driver::{Driver, Environment, Exit, Model, Observer, Recorder, Tools};
use crate::inputs::Inputs;
use crate::log_reader;
use crate::printer::Printer;
use crate::record::Record;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::report::{HeldCallDetails, Projection};
use bloomery_engine::Conversation;
use bloomery_engine::event::FullResult;
use bloomery_engine::line::Chain;
use bloomery_engine::projection::{project, project_refused};
use bloomery_engine::run::Run;
use bloomery_engine::stages::calls::ScriptEnds;
use bloomery_journal::files::Files;
use bloomery_journal::{Claim, Claimed, ClaimingAttempt, JOBS, Store, claim};
use std::path::Path;

/// The end of an epoch. Its log is durable.
#[derive(Debug)]
pub struct EpochEnd {
    /// How the run ended.
    pub exit: Exit,
    /// The state of the conversation.
    pub projection: Projection,
    /// The details of the held call for the people who decide, if the conversation parked because of it.
    pub hold: Option<HeldCallDetails>,
    /// The complete answer or draft.
    pub result: Option<FullResult>,
    /// The ends of the latest calls of scripts.
    pub scripts: ScriptEnds,
}

/// An epoch that has begun; or the end of a Job whose log must not continue, which nothing is written to.
#[derive(Debug)]
pub struct Epoch<'a, M, T, F> {
    inputs: &'a Inputs,
    environment: Environment<'a, M, T>,
    conversation: Conversation,
    claim: Claim<F>,
}

impl<'a, M: Model, T: Tools, F: Files> Epoch<'a, M, T, F> {
    /// Reads the log and claims the next epoch.
    ///
    /// # Errors
    /// If the memory cannot store the log, or the log cannot be continued.
    pub async fn claim(
        files: F,
        inputs: &'a Inputs,
        environment: Environment<'a, M, T>,
    ) -> Result<Self, bloomery_journal::Error> {
        let part = &inputs.part;
        let store = Store::open(files, environment.memory, &part.run_key, environment.writer)?;
        environment.core.write_first_notes();
        let run = Run { has_notes: environment.core.has_notes(), ..inputs.run.clone() };
        let mut conversation = Conversation::new(run);
        let chain = Chain::new(log_source(inputs, environment.memory)).with_acknowledged(part.log.as_ref());
        let attempt = ClaimingAttempt { number: part.attempt, after_disruption: part.after_disruption };
        let claim = claim(store, chain, &mut conversation, attempt, environment.patience.external_wait).await?;
        if let Claim::Refused(_, outcome) = &claim {
            tracing::error!("{}", outcome.message);
        }
        Ok(Self { inputs, environment, conversation, claim })
    }

    /// Returns the number of the epoch, from 1. If none has begun, the number of the last one.
    pub fn number(&self) -> u64 {
        self.conversation.epoch()
    }

    /// Returns the state of the conversation at the claim. Every event in it is durable.
    pub fn projection(&self) -> Projection {
        let position = self.claim.log().position();
        match &self.claim {
            Claim::Begun(_) => project(&self.conversation, position),
            Claim::Refused(_, outcome) => project_refused(&self.conversation, outcome.clone(), position),
        }
    }

    /// Returns the file operations that the log uses, for other files in the memory.
    pub fn files(&self) -> &F {
        self.claim.log().files()
    }

    /// Drives the conversation until it ends or has to stop. If it ends, the Job's record is written to the memory.
    ///
    /// # Errors
    /// If the log cannot be written. Then the epoch is over, and events that are not durable are lost.
    pub async fn drive(self, observer: &dyn Observer, printer: Printer) -> Result<EpochEnd, bloomery_journal::Error> {
        let BegunEpoch { inputs, environment, conversation, claimed } = match self.begin() {
            Begin::Begun(begun) => *begun,
            Begin::Ended(end) => return Ok(*end),
        };
        let recorder = Recorder::new(claimed, printer, conversation.calls(), inputs.redactor.clone());
        let mut driver = Driver::new(conversation, recorder, &environment, observer);
        let exit = Box::pin(driver.run()).await?;
        let projection = driver.projection();
        if exit == Exit::Finished {
            write_record(inputs, &environment, driver.conversation(), &projection, driver.files());
        }
        let result = driver.conversation().result().cloned();
        let scripts = driver.conversation().script_ends().clone();
        let hold = matches!(exit, Exit::Parked(_)).then(|| driver.hold()).flatten();
        Ok(EpochEnd { exit, projection, hold, result, scripts })
    }

    /// Returns the parts of the epoch; or the end of a Job whose log must not continue.
    pub(crate) fn begin(self) -> Begin<'a, M, T, F> {
        let Self { inputs, environment, conversation, claim } = self;
        match claim {
            Claim::Begun(claimed) => {
                Begin::Begun(Box::new(BegunEpoch { inputs, environment, conversation, claimed: *claimed }))
            }
            Claim::Refused(log, outcome) => {
                let is_own = conversation.is_attached() && outcome.code == OutcomeCode::LogTampered;
                let projection = project_refused(&conversation, outcome, log.position());
                // The record of an earlier Job with another goal stays.
                if is_own {
                    write_record(inputs, &environment, &conversation, &projection, log.files());
                }
                let scripts = ScriptEnds::new();
                Begin::Ended(Box::new(EpochEnd { exit: Exit::Finished, projection, hold: None, result: None, scripts }))
            }
        }
    }
}

/// An epoch that can act, or the end of a Job whose log must not continue.
#[derive(Debug)]
pub(crate) enum Begin<'a, M, T, F> {
    /// The epoch has begun.
    Begun(Box<BegunEpoch<'a, M, T, F>>),
    /// Nothing was written to the log, and nothing can be.
    Ended(Box<EpochEnd>),
}

/// The parts of an epoch that has begun.
#[derive(Debug)]
pub(crate) struct BegunEpoch<'a, M, T, F> {
    /// The checked run document.
    pub inputs: &'a Inputs,
    /// Everything that the epoch needs from outside of its log.
    pub environment: Environment<'a, M, T>,
    /// The conversation at the claim.
    pub conversation: Conversation,
    /// The log.
    pub claimed: Claimed<F>,
}

/// Returns the source of the events of the Job's log. The log of a run key may be that of a Job with another name or namespace, such as
/// before a restore.
fn log_source(inputs: &Inputs, memory: &Path) -> String {
    let own = inputs.source();
    if !inputs.part.named_run_key {
        return own;
    }
    let run_key = &inputs.part.run_key;
    let stored = log_reader::source(&memory.join(JOBS).join(run_key));
    stored.filter(|source| source.rsplit('/').next() == Some(run_key)).unwrap_or(own)
}

/// Writes the Job's record. A failure does not fail the Job: the log has everything that the record has.
pub(crate) fn write_record<M, T>(
    inputs: &Inputs,
    environment: &Environment<'_, M, T>,
    conversation: &Conversation,
    projection: &Projection,
    files: &impl Files,
) {
    let record = Record::new(inputs, conversation, projection.clone());
    if let Err(error) = record.write(files, environment.memory, &inputs.part.run_key, environment.writer) {
        tracing::error!("the Job's record cannot be written: {error}");
    }
}
