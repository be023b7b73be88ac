//! Epochs that brought nothing, in a row: a Job whose workers start in vain must end (`engine.md`, section 1).

use crate::event::Event;

/// How many epochs in a row may be lost without anything new before the worker calls it a crash loop.
const MAX_CRASHES: u32 = 3;

/// How many epochs in a row may bring nothing new, where some of them were parked. A drain is no fault of the Job, so
/// there may be many; there must be an end all the same.
pub const MAX_BARREN: u32 = 20;

/// Why it is of no use to start another worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stall {
    /// Workers were lost as soon as they had started.
    Crashes,
    /// Workers were asked to stop before they had got any further.
    Drains,
}

/// The epochs in a row that brought nothing, the present one included.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Barren {
    all: u32,
    since_parked: u32,
}

impl Barren {
    pub(super) fn apply(&mut self, event: &Event) {
        if let Event::EpochStarted { .. } = event {
            self.all += 1;
            self.since_parked += 1;
        } else if !matches!(event, Event::ToolProgressed { .. }) {
            // A call that tells how far it is, and loses its worker each time, gets no further.
            self.since_parked = 0;
            // A worker that only parks, or is told to, has started and stopped as it should, and got no further.
            if !matches!(event, Event::Parked { .. } | Event::DirectiveReceived { .. }) {
                self.all = 0;
            }
        }
    }

    pub(super) fn stall(&self) -> Option<Stall> {
        if self.since_parked > MAX_CRASHES {
            return Some(Stall::Crashes);
        }
        (self.all > MAX_BARREN).then_some(Stall::Drains)
    }
}
