//! How a Job stands: what its log says, and nothing else. Nothing is written.

use super::memory::{Slag, told};
use crate::exit::Trouble;
use bloomery_crds::report::Projection;
use bloomery_engine::Conversation;
use bloomery_engine::line::Chain;
use bloomery_engine::projection::project;
use bloomery_worker::inputs::Inputs;
use bloomery_worker::log::files::Disk;
use bloomery_worker::log::{JOBS, Segments};

/// A conversation as far as its log goes.
pub struct Standing {
    /// The conversation.
    pub conversation: Conversation,
    /// What others see of it; on a cluster, the Job's status.
    pub projection: Projection,
}

/// Reads the log of a Job.
///
/// # Errors
/// If it cannot be read, or is broken.
pub fn of(slag: &Slag, inputs: &Inputs) -> Result<Standing, Trouble> {
    let key = &inputs.part.run_key;
    let mut conversation = Conversation::new(inputs.run());
    let mut chain = Chain::new(inputs.source());
    let segments = Segments::new(Disk, slag.log(key));
    segments.read(&mut chain, |entry| conversation.apply(entry)).map_err(|error| told(&error))?;
    let projection = project(&conversation, chain.position(&format!("{JOBS}/{key}")));
    Ok(Standing { conversation, projection })
}
