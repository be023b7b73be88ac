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
        Self::read_each(directory, inputs, |_, _| ())
    }

    /// Reads the log of a Job. Calls `each` for each entry, with the conversation before the entry.
    ///
    /// # Errors
    /// As [`JobState::read`].
    pub fn read_each(
        directory: &SkillDirectory,
        inputs: &Inputs,
        mut each: impl FnMut(&Conversation, &Entry),
    ) -> Result<Self, Error> {
        let key = &inputs.part.run_key;
        let mut conversation = Conversation::new(inputs.run.clone());
        let mut chain = Chain::new(inputs.source());
        let segments = Segments::new(Disk, directory.log(key));
        let read = segments.read(&mut chain, |entry| {
            each(&conversation, entry);
            conversation.apply(entry);
        });
        read.map_err(|error| log_error(&error))?;
        let projection = project(&conversation, chain.position(&format!("{JOBS}/{key}")));
        Ok(Self { conversation, projection })
    }
}
