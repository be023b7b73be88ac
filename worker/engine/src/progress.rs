//! Counts epochs without progress: a Job whose workers repeatedly stop before they make progress must end
//! (`docs/explanation/engine.md`, section 1).

use crate::event::Event;

/// The most crashed epochs in a row without progress. After one more, the Job ends as a crash loop.
const MAX_CRASHED_EPOCHS: u32 = 3;

/// The most epochs in a row without progress, including epochs that parked or were disrupted. A drain or a disruption is no
/// fault of the Job, so this limit is higher.
pub const MAX_EPOCHS_WITHOUT_PROGRESS: u32 = 20;

/// The reason to end a Job whose epochs make no progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stall {
    /// Workers crashed before they made progress.
    Crashes,
    /// Workers were asked to stop, or were disrupted, before they made progress.
    Drains,
}

/// Counts the epochs in a row without progress, including the current one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ProgressTracker {
    /// The epochs since the latest progress.
    without_progress: u32,
    /// The epochs since the latest progress, park or disruption. All but the current one have crashed.
    since_other_end: u32,
}

impl ProgressTracker {
    pub(crate) fn apply(&mut self, event: &Event) {
        if let Event::EpochStarted { after_disruption, .. } = event {
            self.without_progress += 1;
            self.since_other_end = if *after_disruption { 1 } else { self.since_other_end + 1 };
        } else if !matches!(event, Event::ToolProgressed { .. }) {
            // The progress of a call is no progress of the Job: its worker may crash at the same call each time.
            self.since_other_end = 0;
            // A worker that only parks has not crashed, but has made no progress.
            if !matches!(event, Event::Parked { .. } | Event::DirectiveReceived { .. }) {
                self.without_progress = 0;
            }
        }
    }

    pub(crate) fn stall(&self) -> Option<Stall> {
        if self.since_other_end > MAX_CRASHED_EPOCHS {
            return Some(Stall::Crashes);
        }
        (self.without_progress > MAX_EPOCHS_WITHOUT_PROGRESS).then_some(Stall::Drains)
    }
}
