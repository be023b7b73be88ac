//! The state of a Job, read from its log.

use crate::error::Error;
use crate::local::memory_error::log_error;
use crate::local::skill_directory::SkillDirectory;
use bloomery_crds::report::Projection;
use bloomery_engine::Conversation;
use bloomery_engine::line::{Chain, Entry};
use bloomery_engine::projection::project;
use bloomery_journal::files::Disk;
use bloomery_journal::{JOBS, Segments};
use bloomery_worker::inputs::Inputs;

/// A fold of the log of a Job: a position in the log, and the conversation there.
#[derive(Debug)]
pub struct LogFold {
    /// The conversation.
    pub conversation: Conversation,
    chain: Chain,
    segments: Segments<Disk>,
}

impl LogFold {
    /// Begins before the first event.
    pub fn new(directory: &SkillDirectory, inputs: &Inputs) -> Self {
        Self {
            conversation: Conversation::new(inputs.run.clone()),
            chain: Chain::new(inputs.source()),
            segments: Segments::new(Disk, directory.log(&inputs.part.run_key)),
        }
    }

    /// Reads the rest of the log. Calls `each` for each entry, with the conversation before the entry.
    ///
    /// # Errors
    /// If the log cannot be read, or is broken.
    pub fn read_rest(&mut self, mut each: impl FnMut(&Conversation, &Entry)) -> Result<(), Error> {
        let read = self.segments.read(&mut self.chain, |entry| {
            each(&self.conversation, entry);
            self.conversation.apply(entry);
        });
        read.map_err(|error| log_error(&error))
    }
}

/// The state of a Job at the end of its log.
pub struct JobState {
    /// The conversation.
    pub conversation: Conversation,
    /// The part of the conversation that a Job's status shows on a cluster.
    pub projection: Projection,
}

impl JobState {
    /// Reads the log of a Job.
    ///
    /// # Errors
    /// If the log cannot be read, or is broken.
    pub fn read(directory: &SkillDirectory, inputs: &Inputs) -> Result<Self, Error> {
        let mut fold = LogFold::new(directory, inputs);
        fold.read_rest(|_, _| ())?;
        let LogFold { conversation, chain, .. } = fold;
        let projection = project(&conversation, chain.position(&format!("{JOBS}/{}", inputs.part.run_key)));
        Ok(Self { conversation, projection })
    }
}
