//! What there is to tell, and when.

use bloomery_crds::report::{End, Hold, Projection, Waiting};
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
    /// What people need to know of the call that ends it.
    pub hold: Option<Hold>,
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

/// The latest news that the operator has taken.
#[derive(Debug, Clone)]
pub struct Told {
    /// What it was told.
    pub news: News,
    /// When.
    pub at: Instant,
    /// Whether it has acknowledged all events in them; it may take news and leave the writing for later.
    pub acknowledged: bool,
}

/// When the news are to be told; never again once they are told and acknowledged.
pub fn due(news: &News, told: Option<&Told>) -> Option<Instant> {
    match told {
        None => Some(Instant::now()),
        Some(told) if told.news == *news => (!told.acknowledged).then(|| told.at + EVERY),
        Some(told) if news.is_urgent(&told.news) => Some(told.at),
        Some(told) => Some(told.at + EVERY),
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
        let projection = Projection {
            phase,
            outcome: None,
            result: None,
            gates: Gates::default(),
            workflows: Vec::new(),
            waiting_for: None,
            tool_names: Vec::new(),
            replies_heard: 0,
            stray_replies: Vec::new(),
            remarks: Vec::new(),
            usage: Usage::default(),
            log,
        };
        News { projection, waiting: None, hold: None, end: None }
    }

    #[tokio::test]
    async fn a_person_hears_at_once_and_the_rest_within_five_seconds() {
        let at = Instant::now();
        let told = Told { news: news(Phase::Running, 3), at, acknowledged: true };
        let same = told.news.clone();
        assert_eq!(due(&same, Some(&told)), None);
        assert_eq!(due(&same, Some(&Told { acknowledged: false, ..told.clone() })), Some(at + EVERY));
        assert_eq!(due(&news(Phase::Running, 4), Some(&told)), Some(at + EVERY));
        assert_eq!(due(&news(Phase::Finalizing, 4), Some(&told)), Some(at));
        let waiting = Some(Waiting::McpUnavailable { message: "refused".into() });
        assert_eq!(due(&News { waiting, ..same.clone() }, Some(&told)), Some(at));
        assert_eq!(due(&News { end: Some(End::Finished), ..same.clone() }, Some(&told)), Some(at));
        assert!(due(&same, None).is_some());
    }
}
