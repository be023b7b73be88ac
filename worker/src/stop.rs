//! Requests to stop a run.

use bloomery_engine::event::Directive;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// The reason to stop a run. The reasons are ordered: a later one in this list is stronger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum StopReason {
    /// The pod received a signal to end, for example because its node is drained.
    Drain,
    /// The namespace is suspended.
    Suspended,
    /// The Skill was deleted. The Job is not continued.
    SkillDeleted,
    /// A person has cancelled the Job. It is not continued.
    Cancelled,
    /// Another attempt has taken over.
    Superseded,
}

impl StopReason {
    /// Returns the directive to record, if this reason ends the Job.
    pub fn directive(self) -> Option<Directive> {
        match self {
            Self::Cancelled => Some(Directive::Cancel),
            Self::SkillDeleted => Some(Directive::SkillDeleted),
            Self::Drain | Self::Suspended | Self::Superseded => None,
        }
    }
}

/// A request to stop.
#[derive(Debug, Clone, Copy)]
pub struct StopRequest {
    /// The reason.
    pub reason: StopReason,
    /// When the first request with this reason came.
    pub since: Instant,
}

/// The requests so far.
#[derive(Debug, Clone, Copy, Default)]
struct Requests {
    strongest: Option<StopRequest>,
    drained: Option<Instant>,
}

/// Collects requests to stop. Clones share them. The strongest reason counts, with the time of its first request.
#[derive(Debug, Clone)]
pub struct Stop(Arc<watch::Sender<Requests>>);

impl Default for Stop {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Requests::default())))
    }
}

impl Stop {
    /// Requests that the run stops.
    pub fn request(&self, reason: StopReason) {
        let since = Instant::now();
        self.0.send_if_modified(|requests| {
            let is_drain = reason == StopReason::Drain && requests.drained.is_none();
            if is_drain {
                requests.drained = Some(since);
            }
            let is_stronger = requests.strongest.is_none_or(|request| request.reason < reason);
            if is_stronger {
                requests.strongest = Some(StopRequest { reason, since });
            }
            is_drain || is_stronger
        });
    }

    /// Returns the strongest request so far.
    pub fn requested(&self) -> Option<StopRequest> {
        self.0.borrow().strongest
    }

    /// Waits for a request.
    pub async fn wait(&self) -> StopRequest {
        self.until(|requests| requests.strongest).await
    }

    /// Waits until the pod has received a signal to end. Returns the time of the signal.
    pub async fn drained(&self) -> Instant {
        self.until(|requests| requests.drained).await
    }

    /// Waits for a request, and then for the time that `grace` returns for its reason. A stronger request that arrives in this time
    /// replaces the first one.
    pub async fn grace_over(&self, grace: impl Fn(StopReason) -> Duration) -> StopReason {
        let mut requests = self.0.subscribe();
        loop {
            let Requests { strongest, drained } = *requests.borrow_and_update();
            let Some(request) = strongest else {
                // The sender is `self`, so the channel stays open.
                let _ = requests.changed().await;
                continue;
            };
            // A pod that received the signal is killed after its grace period, so a later request cannot extend it.
            let over = request.since + grace(request.reason);
            let over = drained.map_or(over, |drained| over.min(drained + grace(StopReason::Drain)));
            tokio::select! {
                () = tokio::time::sleep_until(over) => return request.reason,
                _ = requests.changed() => {}
            }
        }
    }

    async fn until<T>(&self, find: impl Fn(&Requests) -> Option<T>) -> T {
        let mut requests = self.0.subscribe();
        loop {
            if let Some(found) = find(&requests.borrow_and_update()) {
                return found;
            }
            // The sender is `self`, so the channel stays open.
            let _ = requests.changed().await;
        }
    }

    /// Turns SIGTERM and SIGINT into requests to stop. Without this, a worker would ignore them, because it is the first process of its
    /// container.
    ///
    /// # Errors
    /// If the handlers cannot be installed.
    pub fn listen(&self) -> std::io::Result<()> {
        use tokio::signal::unix::{SignalKind, signal};
        let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
        let stop = self.clone();
        tokio::spawn(async move {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = interrupt.recv() => {}
            }
            stop.request(StopReason::Drain);
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_signal_becomes_a_request_to_stop() {
        let stop = Stop::default();
        stop.listen().unwrap();
        let kill = format!("kill -TERM {}", std::process::id());
        assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        assert_eq!(stop.wait().await.reason, StopReason::Drain);
    }

    #[tokio::test]
    async fn the_strongest_request_counts_and_clones_share_it() {
        let stop = Stop::default();
        let other = stop.clone();
        assert!(stop.requested().is_none());
        for (requested, counts) in [
            (StopReason::Drain, StopReason::Drain),
            (StopReason::Suspended, StopReason::Suspended),
            (StopReason::Drain, StopReason::Suspended),
            (StopReason::SkillDeleted, StopReason::SkillDeleted),
            (StopReason::Suspended, StopReason::SkillDeleted),
            (StopReason::Cancelled, StopReason::Cancelled),
            (StopReason::SkillDeleted, StopReason::Cancelled),
            (StopReason::Suspended, StopReason::Cancelled),
            (StopReason::Superseded, StopReason::Superseded),
            (StopReason::Cancelled, StopReason::Superseded),
        ] {
            other.request(requested);
            assert_eq!(stop.wait().await.reason, counts);
            assert_eq!(stop.requested().map(|request| request.reason), Some(counts));
        }
    }

    #[tokio::test]
    async fn the_first_request_with_a_reason_sets_its_time() {
        let stop = Stop::default();
        stop.request(StopReason::Cancelled);
        let since = stop.wait().await.since;
        stop.request(StopReason::Drain);
        let drained = stop.drained().await;
        stop.request(StopReason::Cancelled);
        stop.request(StopReason::Drain);
        assert_eq!((stop.wait().await.since, stop.drained().await), (since, drained));
    }

    #[tokio::test]
    async fn a_stronger_reason_has_its_own_grace() {
        let stop = Stop::default();
        let grace =
            |reason| if reason == StopReason::Cancelled { Duration::from_millis(5) } else { Duration::from_hours(1) };
        let cancelled = async {
            stop.request(StopReason::Drain);
            tokio::task::yield_now().await;
            stop.request(StopReason::Cancelled);
        };
        let (reason, ()) = tokio::join!(stop.grace_over(grace), cancelled);
        assert_eq!(reason, StopReason::Cancelled);
        assert!(stop.wait().await.since.elapsed() >= Duration::from_millis(5));
    }

    #[tokio::test]
    async fn a_request_after_a_drain_does_not_extend_the_grace() {
        let now = Instant::now();
        let strongest = Some(StopRequest { reason: StopReason::Suspended, since: now });
        let stop = Stop(Arc::new(watch::Sender::new(Requests { strongest, drained: Some(now) })));
        let grace = |reason| if reason == StopReason::Drain { Duration::ZERO } else { Duration::from_hours(1) };
        assert_eq!(stop.grace_over(grace).await, StopReason::Suspended);
    }
}
