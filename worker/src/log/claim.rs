//! The claim of an epoch: linking a segment whose first line is `epoch.started`.

use super::files::Files;
use super::{Error, Log, Store};
use crate::backoff::Backoff;
use crate::clock::Clock;
use bloomery_engine::line::{Chain, Entry};
use bloomery_engine::{Conversation, Event};
use std::time::Duration;

/// How often a name that exists is read before it is given up as unreadable.
const TRIES: u32 = 20;

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
pub async fn claim<F: Files>(
    store: Store<F>,
    mut chain: Chain,
    conversation: &mut Conversation,
    attempt: u32,
) -> Result<Claimed<F>, Error> {
    let mut stale = 0;
    let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_secs(2));
    loop {
        let before = chain.events();
        store.read(&mut chain, |entry| conversation.apply(entry))?;
        // What was read may have been linked by a worker that died before it synced: were the next segment
        // durable without it, the log would have a hole.
        store.sync()?;
        let mut claimed = chain.clone();
        let started = Event::EpochStarted { epoch: conversation.epoch() + 1, attempt };
        let mut clock = Clock::default();
        let (line, entry) = claimed.append(started, clock.stamp())?;
        match store.add(entry.seq, format!("{line}\n").as_bytes()) {
            Ok(()) => {
                conversation.apply(&entry);
                return Ok(Claimed { log: Log::new(store, claimed), clock, line, entry });
            }
            // A network file system may go on hiding the name that it refuses.
            Err(Error::Superseded { .. }) if chain.events() > before || stale < TRIES => {
                stale = if chain.events() > before { 0 } else { stale + 1 };
                if stale > 1 {
                    tokio::time::sleep(backoff.pause()).await;
                }
            }
            Err(error) => return Err(error),
        }
    }
}
