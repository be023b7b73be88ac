//! What there is to tell, and when.

use bloomery_crds::report::{End, Projection, Waiting};
use std::time::Duration;
use tokio::time::Instant;

/// The longest that a change waits to be told.
pub const EVERY: Duration = Duration::from_secs(5);

/// The latest that there is to tell; everything in it is durable.
#[derive(Debug, Clone, PartialEq)]
pub struct News {
    /// The status as the log has it.
    pub projection: Projection,
    /// What the worker waits for.
    pub waiting: Option<Waiting>,
    /// How the pod ends, once it does.
    pub end: Option<End>,
}

impl News {
    /// Whether a person would want to know what changed since `told`; the rest is told within [`EVERY`].
    fn is_urgent(&self, told: &Self) -> bool {
        self.projection.phase != told.projection.phase
            || self.projection.outcome != told.projection.outcome
            || self.waiting != told.waiting
            || self.end != told.end
    }
}

/// When the news are to be told; never where they have been told already. `told` are the latest that the operator
/// has taken, and since when.
pub fn due(news: &News, told: Option<(&News, Instant)>) -> Option<Instant> {
    match told {
        None => Some(Instant::now()),
        Some((told, _)) if told == news => None,
        Some((told, at)) if news.is_urgent(told) => Some(at),
        Some((_, at)) => Some(at + EVERY),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_crds::Digest;
    use bloomery_crds::outcome::Phase;
    use bloomery_crds::v1alpha1::{Gates, LogPosition, Usage};

    fn news(phase: Phase, events: u64) -> News {
        let log = LogPosition { path: "jobs/k".into(), events, head: Digest::of_bytes(b"") };
        let projection =
            Projection { phase, outcome: None, result: None, gates: Gates::default(), usage: Usage::default(), log };
        News { projection, waiting: None, end: None }
    }

    #[tokio::test]
    async fn a_person_hears_at_once_and_the_rest_within_five_seconds() {
        let at = Instant::now();
        let told = news(Phase::Running, 3);
        assert_eq!(due(&told, Some((&told, at))), None);
        assert_eq!(due(&news(Phase::Running, 4), Some((&told, at))), Some(at + EVERY));
        assert_eq!(due(&news(Phase::Finalizing, 4), Some((&told, at))), Some(at));
        let waits = Waiting::McpUnavailable { message: "refused".into() };
        assert_eq!(due(&News { waiting: Some(waits), ..told.clone() }, Some((&told, at))), Some(at));
        assert_eq!(due(&News { end: Some(End::Finished), ..told.clone() }, Some((&told, at))), Some(at));
        assert!(due(&told, None).is_some());
    }
}
