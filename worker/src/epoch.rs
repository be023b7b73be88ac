//! One epoch of a conversation: claimed, driven as far as it goes, recorded. The same on a cluster and without one;
//! who started it and who hears of it is the caller's.

use crate::driver::{Audience, Driver, Exit, Journal, Model, Patience, People, Tools, World};
use crate::focus::FocusCache;
use crate::inputs::Inputs;
use crate::printer::Printer;
use crate::reach::Reach;
use crate::recent::Recent;
use crate::record::Record;
use crate::stop::Stop;
use crate::tools::{CoreTools, Notes};
use bloomery_crds::report::{HeldCallDetails, Projection};
use bloomery_engine::Conversation;
use bloomery_engine::event::FullResult;
use bloomery_engine::line::Chain;
use bloomery_engine::projection::project;
use bloomery_engine::run::Run;
use bloomery_journal::files::Files;
use bloomery_journal::{Claimed, Store, claim};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where an epoch writes.
#[derive(Debug, Clone, Copy)]
pub struct Ground<'a> {
    /// Directory of the Skill's memory.
    pub memory: &'a Path,
    /// Unique to this worker: makes what it writes its own.
    pub writer: &'a str,
    /// How many bytes the focus cache may take.
    pub focus_cache_bytes: u64,
    /// Where the endpoints that the Job binds may be.
    pub reach: &'a Reach,
    /// The directories of the memory of all Skills, where the Job may bind what holds it: on a person's own disk. File
    /// tools do not reach them.
    pub hidden: &'a [PathBuf],
}

/// Who an epoch deals with.
#[derive(Debug)]
pub struct Company<'a, M, T> {
    /// The models.
    pub model: &'a M,
    /// The Skill's tools.
    pub tools: &'a T,
    /// Who decides and answers.
    pub people: &'a dyn People,
    /// Who is told how it goes.
    pub audience: &'a dyn Audience,
    /// The request to stop.
    pub stop: &'a Stop,
    /// Where events are printed.
    pub printer: Printer,
    /// How long to wait for what.
    pub patience: Patience,
}

/// How an epoch ended; its log is durable.
#[derive(Debug)]
pub struct Ended {
    /// How.
    pub exit: Exit,
    /// How the conversation stands.
    pub projection: Projection,
    /// What people need to know of a call that is held, where it parked.
    pub hold: Option<HeldCallDetails>,
    /// The answer or the draft, whole.
    pub result: Option<FullResult>,
}

/// An epoch that has begun.
#[derive(Debug)]
pub struct Epoch<'a, F> {
    inputs: &'a Inputs,
    ground: Ground<'a>,
    conversation: Conversation,
    claimed: Claimed<F>,
}

impl<'a, F: Files> Epoch<'a, F> {
    /// Folds the log and claims the next epoch; `patience` is how long what a volume goes on hiding is looked for.
    ///
    /// # Errors
    /// If the memory cannot keep the log, or the log cannot be continued.
    pub async fn claim(
        files: F,
        inputs: &'a Inputs,
        ground: Ground<'a>,
        patience: Duration,
    ) -> Result<Self, bloomery_journal::Error> {
        let part = &inputs.part;
        let store = Store::open(files, ground.memory, &part.run_key, ground.writer)?;
        let notes = notes(inputs, ground);
        let mut conversation = Conversation::new(Run { has_notes: notes.are_there(), ..inputs.run() });
        let chain = Chain::new(inputs.source()).with_acknowledged(part.log.as_ref());
        let claimed = claim(store, chain, &mut conversation, part.attempt, patience).await?;
        Ok(Self { inputs, ground, conversation, claimed })
    }

    /// Its number, from 1.
    pub fn number(&self) -> u64 {
        self.conversation.epoch()
    }

    /// The conversation as it was taken over; every event in it is durable.
    pub fn projection(&self) -> Projection {
        project(&self.conversation, self.claimed.log.position())
    }

    /// The file layer below the log, for what is kept beside it.
    pub fn files(&self) -> &F {
        self.claimed.log.files()
    }

    /// Drives the conversation to its end, or until it has to stop. One that is over has its record in the memory.
    ///
    /// # Errors
    /// If the log cannot be written. The epoch is over then: what was not durable has not happened.
    pub async fn drive<M: Model, T: Tools>(self, company: Company<'_, M, T>) -> Result<Ended, bloomery_journal::Error> {
        let Self { inputs, ground, conversation, claimed } = self;
        let Company { model, tools, people, audience, stop, printer, patience } = company;
        let focus = FocusCache::new(ground.memory, ground.writer, ground.focus_cache_bytes);
        let resources = &inputs.part.resources;
        let declared = &inputs.revision.spec.resources;
        let core = CoreTools::new(resources, focus)
            .with_notes(notes(inputs, ground))
            .following(ground.memory, inputs.part.continues.as_ref());
        let mut core = core.calling(declared, resources, ground.reach.clone(), inputs.redactor.clone());
        if !ground.hidden.is_empty() {
            let hidden: Vec<&Path> = ground.hidden.iter().map(PathBuf::as_path).chain([ground.memory]).collect();
            core = core.hiding(&hidden).map_err(|error| bloomery_journal::Error::of("hide", ground.memory, error))?;
        }
        let recent = Recent::new(ground.memory, ground.writer);
        let world = World { model, tools, people, core: &core, recent: &recent, audience, stop, patience };
        let journal = Journal::new(claimed, printer, conversation.calls(), inputs.redactor.clone());
        let mut driver = Driver::new(conversation, journal, world);
        let exit = Box::pin(driver.run()).await?;
        let projection = driver.projection();
        if exit == Exit::Finished {
            let record = Record::new(inputs, driver.conversation(), projection.clone());
            // The log says all that the record does, so a record that cannot be written is no reason to fail.
            if let Err(error) = record.write(driver.files(), ground.memory, &inputs.part.run_key, ground.writer) {
                tracing::error!("the Job's record cannot be written: {error}");
            }
        }
        let result = driver.conversation().result().cloned();
        let hold = matches!(exit, Exit::Parked(_)).then(|| driver.hold()).flatten();
        Ok(Ended { exit, projection, hold, result })
    }
}

/// The memory bank, as this Job may use it.
fn notes(inputs: &Inputs, ground: Ground<'_>) -> Notes {
    Notes::new(ground.memory, ground.writer, &inputs.part, inputs.revision.spec.bank())
}
