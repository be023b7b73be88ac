//! The claim of an epoch: it links a segment whose first line is `epoch.started`.

use super::clock::Clock;
use super::files::Files;
use super::{Error, Log, Store};
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use bloomery_engine::line::{Chain, Entry};
use bloomery_engine::{Conversation, Event};
use std::time::Duration;

/// The time limit for events that the operator has acknowledged to appear: a network file system may be that late.
const MAX_VISIBILITY_DELAY: Duration = Duration::from_secs(30);

/// An epoch that this worker has begun.
#[derive(Debug)]
pub struct Claimed<F> {
    /// The log. This worker may write to it until another attempt claims it.
    pub log: Log<F>,
    /// The clock of the epoch, which began with the claim.
    pub clock: Clock,
    /// The line that began the epoch.
    pub line: String,
    /// The event in that line.
    pub entry: Entry,
}

/// Reads the log into `conversation`, and claims the next epoch for this attempt. If another worker was faster, it reads on and
/// tries the next name.
///
/// It waits for segments that the volume does not show yet for `patience`, and at most for half a minute.
///
/// # Errors
/// [`Error::Lost`] if the log lacks events that `chain` knows to be acknowledged; otherwise the errors of reading and writing.
pub async fn claim<F: Files>(
    store: Store<F>,
    mut chain: Chain,
    conversation: &mut Conversation,
    attempt: u32,
    patience: Duration,
) -> Result<Claimed<F>, Error> {
    let mut late = Late::new(patience.min(MAX_VISIBILITY_DELAY));
    loop {
        let before = chain.events();
        store.read(&mut chain, |entry| conversation.apply(entry))?;
        // A worker may have died between linking a segment and syncing it. If the next segment became durable without it, the
        // log would have a gap.
        store.sync()?;
        if let Some(known) = chain.missing_lines() {
            if late.wait().await {
                continue;
            }
            return Err(store.lost(chain.events(), known));
        }
        let mut claimed = chain.clone();
        let started = Event::EpochStarted { epoch: conversation.epoch() + 1, attempt };
        let mut clock = Clock::default();
        let (line, entry) = claimed.append(started, clock.stamp())?;
        match store.add(entry.seq, format!("{line}\n").as_bytes()) {
            Ok(()) => {
                store.clear(entry.seq);
                conversation.apply(&entry);
                return Ok(Claimed { log: Log::new(store, claimed), clock, line, entry });
            }
            Err(Error::Superseded { .. }) if chain.events() > before => {
                late = Late::new(patience.min(MAX_VISIBILITY_DELAY));
            }
            // The name exists, and its content is not visible yet.
            Err(error @ Error::Superseded { .. }) => {
                if !late.wait().await {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
    }
}

/// The time that is left for something to appear that must be there.
struct Late {
    looked: bool,
    left: Duration,
    delays: ExponentialBackoff,
}

impl Late {
    fn new(left: Duration) -> Self {
        // The jitter adds up to the whole delay.
        let delays = ExponentialBuilder::new()
            .with_min_delay(Duration::from_millis(25))
            .with_max_delay(Duration::from_secs(1))
            .without_max_times()
            .with_jitter();
        Self { looked: false, left, delays: delays.build() }
    }

    /// Waits before the next look, and returns true; returns false once the time is over. The first look is at once.
    async fn wait(&mut self) -> bool {
        if !std::mem::replace(&mut self.looked, true) {
            return true;
        }
        let Some(delay) = self.delays.next() else { return false };
        let Some(left) = self.left.checked_sub(delay) else { return false };
        self.left = left;
        tokio::time::sleep(delay).await;
        true
    }
}
