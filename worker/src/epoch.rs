//! Runs one epoch of a conversation: claims it, drives the conversation until it ends or has to stop, and writes the Job's record.
//! Worker pods and local mode use it.

use crate::driver::{Driver, Environment, Exit, Model, Observer, Recorder, Tools};
use crate::inputs::Inputs;
use crate::printer::Printer;
use crate::record::Record;
use bloomery_crds::report::{HeldCallDetails, Projection};
use bloomery_engine::Conversation;
use bloomery_engine::event::FullResult;
use bloomery_engine::line::Chain;
use bloomery_engine::projection::project;
use bloomery_engine::run::Run;
use bloomery_journal::files::Files;
use bloomery_journal::{Claimed, ClaimingAttempt, Store, claim};

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
}

/// An epoch that has begun.
#[derive(Debug)]
pub struct Epoch<'a, M, T, F> {
    inputs: &'a Inputs,
    environment: Environment<'a, M, T>,
    conversation: Conversation,
    claimed: Claimed<F>,
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
        let run = Run { has_notes: environment.core.has_notes(), ..inputs.run.clone() };
        let mut conversation = Conversation::new(run);
        let chain = Chain::new(inputs.source()).with_acknowledged(part.log.as_ref());
        let attempt = ClaimingAttempt { number: part.attempt, after_disruption: part.after_disruption };
        let claimed = claim(store, chain, &mut conversation, attempt, environment.patience.external_wait).await?;
        Ok(Self { inputs, environment, conversation, claimed })
    }

    /// Returns the number of the epoch, from 1.
    pub fn number(&self) -> u64 {
        self.conversation.epoch()
    }

    /// Returns the state of the conversation at the claim. Every event in it is durable.
    pub fn projection(&self) -> Projection {
        project(&self.conversation, self.claimed.log.position())
    }

    /// Returns the file operations that the log uses, for other files in the memory.
    pub fn files(&self) -> &F {
        self.claimed.log.files()
    }

    /// Drives the conversation until it ends or has to stop. If it ends, the Job's record is written to the memory.
    ///
    /// # Errors
    /// If the log cannot be written. Then the epoch is over, and events that are not durable are lost.
    pub async fn drive(self, observer: &dyn Observer, printer: Printer) -> Result<EpochEnd, bloomery_journal::Error> {
        let Self { inputs, environment, conversation, claimed } = self;
        let recorder = Recorder::new(claimed, printer, conversation.calls(), inputs.redactor.clone());
        let mut driver = Driver::new(conversation, recorder, &environment, observer);
        let exit = Box::pin(driver.run()).await?;
        let projection = driver.projection();
        if exit == Exit::Finished {
            let record = Record::new(inputs, driver.conversation(), projection.clone());
            let key = &inputs.part.run_key;
            // The log has everything that the record has, so this does not fail the Job.
            if let Err(error) = record.write(driver.files(), environment.memory, key, environment.writer) {
                tracing::error!("the Job's record cannot be written: {error}");
            }
        }
        let result = driver.conversation().result().cloned();
        let hold = matches!(exit, Exit::Parked(_)).then(|| driver.hold()).flatten();
        Ok(EpochEnd { exit, projection, hold, result })
    }
}
