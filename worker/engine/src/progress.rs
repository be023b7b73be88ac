//! Epochs in a row without progress: a Job whose workers start in vain must end (`docs/explanation/engine.md`, section 1).

use crate::event::Event;

/// The most epochs in a row that are lost without progress before the Job ends as a crash loop.
const MAX_LOST_EPOCHS: u32 = 3;

/// The most epochs in a row without progress when some of them were parked. A drain is no fault of the Job, so
/// there may be many, but not without end.
pub const MAX_EPOCHS_WITHOUT_PROGRESS: u32 = 20;

/// The reason to start no further worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stall {
    /// Workers were lost right after their start.
    Crashes,
    /// Workers were asked to stop before they made progress.
    Drains,
}

/// Counts the epochs in a row without progress, the present one included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgressTracker {
    without_progress: u32,
    since_parked: u32,
}

impl ProgressTracker {
    pub(crate) fn apply(&mut self, event: &Event) {
        if let Event::EpochStarted { .. } = event {
            self.without_progress += 1;
            self.since_parked += 1;
        } else if !matches!(event, Event::ToolProgressed { .. }) {
            // A call that only reports its progress, and loses its worker each time, gets no further.
            self.since_parked = 0;
            // A worker that only parks has started and stopped as it should, but made no progress.
            if !matches!(event, Event::Parked { .. } | Event::DirectiveReceived { .. }) {
                self.without_progress = 0;
            }
        }
    }

    pub(crate) fn stall(&self) -> Option<Stall> {
        if self.since_parked > MAX_LOST_EPOCHS {
            return Some(Stall::Crashes);
        }
        (self.without_progress > MAX_EPOCHS_WITHOUT_PROGRESS).then_some(Stall::Drains)
    }
}
