//! What there is to tell, and when.

use bloomery_crds::report::{ExternalWait, HeldCallDetails, PodEnd, Projection};
use std::time::Duration;
use tokio::time::Instant;

/// The longest that a change waits to be told, and the longest that nothing is told: what the operator answers is the only
/// way in which a worker hears of anything. Less than 5 s (`docs/explanation/engine.md`, section 6), so that one that is cancelled within a
/// call with effect has ended after 10 s.
pub const EVERY: Duration = Duration::from_secs(4);

/// How long the first news wait. What they cost, a handshake above all, would else be paid before the first request to the
/// model, for which the whole Job waits.
const FIRST: Duration = Duration::from_millis(20);

/// The latest that there is to tell; everything in it is durable.
#[derive(Debug, Clone, PartialEq)]
pub struct News {
    /// The status as the log has it.
    pub projection: Projection,
    /// What the worker waits for.
    pub waiting: Option<ExternalWait>,
    /// What people need to know of the call that ends it.
    pub hold: Option<HeldCallDetails>,
    /// How the pod ends, once it does.
    pub end: Option<PodEnd>,
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
}

/// When the news are to be told, the first of which came at `first`. The same ones are told again and again, to hear what
/// the operator has to say.
pub fn due(news: &News, told: Option<&Told>, first: Instant) -> Instant {
    match told {
        None if news.waiting.is_some() || news.end.is_some() => first,
        None => first + FIRST,
        Some(told) if news.is_urgent(&told.news) => told.at,
        Some(told) => told.at + EVERY,
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
    async fn a_person_hears_at_once_and_the_rest_and_nothing_new_within_five_seconds() {
        assert!(EVERY < Duration::from_secs(5));
        let at = Instant::now();
        let told = Told { news: news(Phase::Running, 3), at };
        let same = told.news.clone();
        assert_eq!(due(&same, Some(&told), at), at + EVERY);
        assert_eq!(due(&news(Phase::Running, 4), Some(&told), at), at + EVERY);
        assert_eq!(due(&news(Phase::Finalizing, 4), Some(&told), at), at);
        let waiting = Some(ExternalWait::McpUnavailable { message: "refused".into() });
        assert_eq!(due(&News { waiting, ..same.clone() }, Some(&told), at), at);
        assert_eq!(due(&News { end: Some(PodEnd::Finished), ..same.clone() }, Some(&told), at), at);
    }

    #[tokio::test]
    async fn the_first_news_wait_for_the_first_request_unless_the_run_waits_or_ends() {
        let at = Instant::now();
        let first = news(Phase::Running, 1);
        assert_eq!(due(&first, None, at), at + FIRST);
        let waiting = Some(ExternalWait::McpUnavailable { message: "refused".into() });
        assert_eq!(due(&News { waiting, ..first.clone() }, None, at), at);
        assert_eq!(due(&News { end: Some(PodEnd::Finished), ..first }, None, at), at);
    }
}
