//! Claims an epoch, by linking a segment whose first line is `epoch.started`.

use super::clock::Clock;
use super::files::Files;
use super::{Error, Log, Store};
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use bloomery_crds::outcome::Outcome;
use bloomery_engine::line::{Chain, Entry};
use bloomery_engine::{Conversation, Event};
use std::time::Duration;

/// The longest wait for segments that must exist. A network file system may show them late.
const MAX_VISIBILITY_DELAY: Duration = Duration::from_secs(30);

/// An epoch that this worker has begun.
#[derive(Debug)]
pub struct Claimed<F> {
    /// The log. This worker may write to it until another attempt claims it.
    pub log: Log<F>,
    /// The clock of the epoch. It started with the claim.
    pub clock: Clock,
    /// The line that began the epoch.
    pub line: String,
    /// The event in that line.
    pub entry: Entry,
}

/// The result of a claim.
#[derive(Debug)]
pub enum Claim<F> {
    /// The epoch has begun.
    Begun(Box<Claimed<F>>),
    /// The log approves a call that nobody has approved, or has another goal ([`Conversation::refusal`]). Nothing was written to the
    /// log, and nothing can be. Holds the closed log, and the outcome of the Job.
    Refused(Box<Log<F>>, Outcome),
}

impl<F: Files> Claim<F> {
    /// Returns the epoch, if it has begun.
    pub fn begun(self) -> Option<Claimed<F>> {
        match self {
            Self::Begun(claimed) => Some(*claimed),
            Self::Refused(..) => None,
        }
    }

    /// Returns the log.
    pub fn log(&self) -> &Log<F> {
        match self {
            Self::Begun(claimed) => &claimed.log,
            Self::Refused(log, _) => log,
        }
    }
}

/// An attempt that claims an epoch.
#[derive(Debug, Clone, Copy)]
pub struct ClaimingAttempt {
    /// Its number, from 1.
    pub number: u32,
    /// True if the previous attempt was disrupted.
    pub after_disruption: bool,
}

/// Reads the log into `conversation`, and claims the next epoch for this attempt. If another worker was faster, this worker reads
/// the new events and tries the next name. A log that must not continue ([`Conversation::refusal`]) is not claimed.
///
/// Segments that must exist may not be visible on the volume yet. The claim waits for them for `patience`, but not longer than
/// 30 s.
///
/// # Errors
/// [`Error::Lost`] if the log lacks events that the operator has acknowledged, according to `chain`; otherwise the errors of
/// reading and writing.
pub async fn claim<F: Files>(
    store: Store<F>,
    mut chain: Chain,
    conversation: &mut Conversation,
    attempt: ClaimingAttempt,
    patience: Duration,
) -> Result<Claim<F>, Error> {
    let max_wait = patience.min(MAX_VISIBILITY_DELAY);
    let mut wait = VisibilityWait::new(max_wait);
    loop {
        let events_before = chain.events();
        store.read(&mut chain, |entry| conversation.apply(entry))?;
        // A worker may have been killed after it linked a segment and before it synced the directory. If only the next segment became
        // durable, the log would have a gap. Without segments there can be none.
        if chain.events() > 0 {
            store.sync()?;
        }
        if let Some(acknowledged) = chain.expected_lines() {
            let has_time_left = wait.next().await;
            if has_time_left {
                continue;
            }
            return Err(store.lost_error(chain.events(), acknowledged));
        }
        if let Some(outcome) = conversation.refusal() {
            let log = Log::new(store, chain);
            log.close();
            return Ok(Claim::Refused(Box::new(log), outcome));
        }
        let mut claimed_chain = chain.clone();
        let ClaimingAttempt { number, after_disruption } = attempt;
        let started = Event::EpochStarted { epoch: conversation.epoch() + 1, attempt: number, after_disruption };
        let mut clock = Clock::default();
        let (line, entry) = claimed_chain.append(started, clock.stamp())?;
        match store.add(entry.seq, format!("{line}\n").as_bytes()) {
            Ok(()) => {
                // Before the first act. Without the directory, the segment would be lost.
                store.sync_parents()?;
                store.remove_leftovers_of_others(entry.seq);
                conversation.apply(&entry);
                let log = Log::new(store, claimed_chain);
                return Ok(Claim::Begun(Box::new(Claimed { log, clock, line, entry })));
            }
            // The volume has just shown new events, so the wait for the next ones begins again.
            Err(Error::Superseded { .. }) if chain.events() > events_before => {
                wait = VisibilityWait::new(max_wait);
            }
            // The name exists, but the volume does not show the segment yet.
            Err(error @ Error::Superseded { .. }) => {
                let has_time_left = wait.next().await;
                if !has_time_left {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// The wait for a segment that must exist.
struct VisibilityWait {
    has_retried: bool,
    /// The time that is left for further waits.
    left: Duration,
    delays: ExponentialBackoff,
}

impl VisibilityWait {
    fn new(left: Duration) -> Self {
        // backon adds a jitter of up to the whole delay.
        let delays = ExponentialBuilder::new()
            .with_min_delay(Duration::from_millis(25))
            .with_max_delay(Duration::from_secs(1))
            .without_max_times()
            .with_jitter();
        Self { has_retried: false, left, delays: delays.build() }
    }

    /// Waits before a retry. The first retry is immediate. Returns `false` once no time is left.
    async fn next(&mut self) -> bool {
        if !std::mem::replace(&mut self.has_retried, true) {
            return true;
        }
        let Some(delay) = self.delays.next() else { return false };
        let Some(left) = self.left.checked_sub(delay) else { return false };
        self.left = left;
        tokio::time::sleep(delay).await;
        true
    }
}
