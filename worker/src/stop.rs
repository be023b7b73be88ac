//! Asking a run to stop, from outside of it.

use bloomery_engine::event::Directive;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// Why a run is to stop. Of several reasons the last one here counts, as long as the run has not stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The pod was asked to end: a drain, a preemption, a deletion.
    Drain,
    /// The operator says that the namespace is suspended.
    Suspended,
    /// The operator says that the Skill was deleted: the Job is not to be continued.
    SkillDeleted,
    /// The operator says that a person has cancelled the Job: it is not to be continued.
    Cancelled,
    /// The operator says that another attempt runs.
    Superseded,
}

impl Why {
    /// What the operator said, where that ends the Job.
    pub fn ends(self) -> Option<Directive> {
        match self {
            Self::Cancelled => Some(Directive::Cancel),
            Self::SkillDeleted => Some(Directive::SkillDeleted),
            Self::Drain | Self::Suspended | Self::Superseded => None,
        }
    }
}

/// A request to stop, and when it came.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// Why.
    pub why: Why,
    /// Since when.
    pub since: Instant,
}

/// Everything that was asked.
#[derive(Debug, Clone, Copy, Default)]
struct Requests {
    weightiest: Option<Asked>,
    drained: Option<Instant>,
}

/// Carries the requests to stop; all clones are one. The weightiest counts, and the first of its kind.
#[derive(Debug, Clone)]
pub struct Stop(Arc<watch::Sender<Requests>>);

impl Default for Stop {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(Requests::default())))
    }
}

impl Stop {
    /// Asks the run to stop.
    pub fn ask(&self, why: Why) {
        let since = Instant::now();
        self.0.send_if_modified(|requests| {
            let is_drain = why == Why::Drain && requests.drained.is_none();
            if is_drain {
                requests.drained = Some(since);
            }
            let weighs_more = requests.weightiest.is_none_or(|asked| asked.why < why);
            if weighs_more {
                requests.weightiest = Some(Asked { why, since });
            }
            is_drain || weighs_more
        });
    }

    /// Says whether the run is to stop.
    pub fn asked(&self) -> Option<Asked> {
        self.0.borrow().weightiest
    }

    /// Waits until the run is to stop.
    pub async fn wait(&self) -> Asked {
        self.until(|requests| requests.weightiest).await
    }

    /// Waits until the pod was asked to end, whatever else was asked; gives when that was.
    pub async fn drained(&self) -> Instant {
        self.until(|requests| requests.drained).await
    }

    /// Waits until the run is to stop, and then as long as `grace` gives for that. Where a weightier reason comes
    /// meanwhile, its own grace counts.
    pub async fn grace_over(&self, grace: impl Fn(Why) -> Duration) -> Why {
        let mut requests = self.0.subscribe();
        loop {
            let Requests { weightiest, drained } = *requests.borrow_and_update();
            let Some(asked) = weightiest else {
                // The sender is `self`, so the channel stays open.
                let _ = requests.changed().await;
                continue;
            };
            // A pod that was asked to end is killed, whatever came later.
            let over = asked.since + grace(asked.why);
            let over = drained.map_or(over, |drained| over.min(drained + grace(Why::Drain)));
            tokio::select! {
                () = tokio::time::sleep_until(over) => return asked.why,
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

    /// Turns SIGTERM and SIGINT into a request to stop. Without it a worker, which is the first process of its
    /// container, would not notice them.
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
            stop.ask(Why::Drain);
        });
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_signal_is_a_request_to_stop_and_no_end() {
        let stop = Stop::default();
        stop.listen().unwrap();
        let kill = format!("kill -TERM {}", std::process::id());
        assert!(std::process::Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        assert_eq!(stop.wait().await.why, Why::Drain);
    }

    #[tokio::test]
    async fn the_weightiest_request_counts_and_all_clones_hear_it() {
        let stop = Stop::default();
        let other = stop.clone();
        assert!(stop.asked().is_none());
        for (asked, counts) in [
            (Why::Drain, Why::Drain),
            (Why::Suspended, Why::Suspended),
            (Why::Drain, Why::Suspended),
            (Why::SkillDeleted, Why::SkillDeleted),
            (Why::Suspended, Why::SkillDeleted),
            (Why::Cancelled, Why::Cancelled),
            (Why::SkillDeleted, Why::Cancelled),
            (Why::Suspended, Why::Cancelled),
            (Why::Superseded, Why::Superseded),
            (Why::Cancelled, Why::Superseded),
        ] {
            other.ask(asked);
            assert_eq!(stop.wait().await.why, counts);
            assert_eq!(stop.asked().map(|asked| asked.why), Some(counts));
        }
    }

    #[tokio::test]
    async fn the_first_request_of_a_kind_says_since_when() {
        let stop = Stop::default();
        stop.ask(Why::Cancelled);
        let since = stop.wait().await.since;
        stop.ask(Why::Drain);
        let drained = stop.drained().await;
        stop.ask(Why::Cancelled);
        stop.ask(Why::Drain);
        assert_eq!((stop.wait().await.since, stop.drained().await), (since, drained));
    }

    #[tokio::test]
    async fn a_weightier_reason_has_its_own_grace() {
        let stop = Stop::default();
        let grace = |why| if why == Why::Cancelled { Duration::from_millis(5) } else { Duration::from_hours(1) };
        let cancelled = async {
            stop.ask(Why::Drain);
            tokio::task::yield_now().await;
            stop.ask(Why::Cancelled);
        };
        let (why, ()) = tokio::join!(stop.grace_over(grace), cancelled);
        assert_eq!(why, Why::Cancelled);
        assert!(stop.wait().await.since.elapsed() >= Duration::from_millis(5));
    }
    #[tokio::test]
    async fn what_comes_after_a_drain_gives_no_more_time_than_the_drain_does() {
        let now = Instant::now();
        let weightiest = Some(Asked { why: Why::Suspended, since: now });
        let stop = Stop(Arc::new(watch::Sender::new(Requests { weightiest, drained: Some(now) })));
        let grace = |why| if why == Why::Drain { Duration::ZERO } else { Duration::from_hours(1) };
        assert_eq!(stop.grace_over(grace).await, Why::Suspended);
    }
}
