//! The claim of an epoch: linking a segment whose first line is `epoch.started`.

use super::clock::Clock;
use super::files::Files;
use super::{Error, Log, Store};
use backon::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use bloomery_engine::line::{Chain, Entry};
use bloomery_engine::{Conversation, Event};
use std::time::Duration;

/// How long what must be there is looked for at most: a network file system may be as late with it.
const LATE: Duration = Duration::from_secs(30);

/// An epoch that this worker has begun.
#[derive(Debug)]
pub struct Claimed<F> {
    /// The log, which is this worker's to write until another attempt claims it.
    pub log: Log<F>,
    /// The clock of the epoch, which began with the claim.
    pub clock: Clock,
    /// The line that began the epoch.
    pub line: String,
    /// The event in that line.
    pub entry: Entry,
}

/// Folds the log into `conversation` and claims the next epoch for this attempt. Where another worker was
/// faster it reads on and tries the next name: before its epoch has begun an attempt owes nothing.
///
/// What the volume goes on hiding is looked for as long as `patience` says, and never longer than half a minute.
///
/// # Errors
/// [`Error::Lost`] where the log lacks what `chain` knows of it; else what reading and writing it says.
pub async fn claim<F: Files>(
    store: Store<F>,
    mut chain: Chain,
    conversation: &mut Conversation,
    attempt: u32,
    patience: Duration,
) -> Result<Claimed<F>, Error> {
    let mut late = Late::new(patience.min(LATE));
    loop {
        let before = chain.events();
        store.read(&mut chain, |entry| conversation.apply(entry))?;
        // What was read may have been linked by a worker that died before it synced: were the next segment
        // durable without it, the log would have a hole.
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
            Err(Error::Superseded { .. }) if chain.events() > before => late = Late::new(patience.min(LATE)),
            // The name is refused, and cannot be read yet.
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
