//! The event log of one Job, which cannot fork (`engine.md`, section 1).
//!
//! Lines are buffered until something needs them durable; then they become one **segment**, a file that is
//! never changed, linked exclusively to the name of its first line. Two workers that share a prefix want the
//! same name, so one of them finds out that it is superseded before it does anything.

mod claim;
mod error;
pub mod files;
pub mod segment;
mod segments;
mod store;
mod volume;

pub use claim::{Claimed, claim};
pub use error::Error;
pub use segments::Segments;
pub use store::{JOBS, Store};
pub use volume::check as check_volume;

use bloomery_crds::v1alpha1::LogPosition;
use bloomery_engine::Event;
use bloomery_engine::line::{Chain, Entry, Stamp};
use files::Files;

/// The log of a Job during one epoch of this worker.
#[derive(Debug)]
pub struct Log<F> {
    store: Store<F>,
    chain: Chain,
    buffer: String,
    durable: u64,
    over: bool,
}

impl<F: Files> Log<F> {
    fn new(store: Store<F>, chain: Chain) -> Self {
        Self { store, durable: chain.events(), chain, buffer: String::new(), over: false }
    }

    /// Adds an event, which is not durable before [`Log::sync`]; gives its line, and the event in its place.
    pub fn append(&mut self, event: Event, stamp: Stamp) -> Result<(String, Entry), Error> {
        if self.over {
            return Err(Error::Over);
        }
        let (line, entry) = self.chain.append(event, stamp)?;
        self.buffer.push_str(&line);
        self.buffer.push('\n');
        Ok((line, entry))
    }

    /// Makes every event durable, as one new segment; where there is none to write, does nothing.
    ///
    /// # Errors
    /// [`Error::Superseded`] where another attempt has taken over. After any error the log is of no more use.
    pub fn sync(&mut self) -> Result<(), Error> {
        if self.over {
            return Err(Error::Over);
        }
        if self.buffer.is_empty() {
            return Ok(());
        }
        let added = self.store.add(self.durable + 1, self.buffer.as_bytes());
        self.over = added.is_err();
        added?;
        self.buffer.clear();
        self.durable = self.chain.events();
        Ok(())
    }

    /// Does what can wait until there is nothing else to do; see [`Store::tidy`].
    pub fn tidy(&self) {
        if !self.over {
            self.store.tidy(self.durable + 1);
        }
    }

    /// Leaves nothing but segments behind; nothing is added any more.
    pub fn close(&mut self) {
        self.over = true;
        self.store.close();
    }

    /// Where the log stands, with what is not durable yet.
    pub fn position(&self) -> LogPosition {
        self.chain.position(&self.store.path())
    }

    /// Reads all that is durable, from the beginning.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn reread(&self, each: impl FnMut(&Entry)) -> Result<(), Error> {
        self.store.read(&mut self.chain.anew(), each)
    }

    /// The file layer below, for what is kept beside the log.
    pub fn files(&self) -> &F {
        self.store.files()
    }
}

#[cfg(test)]
mod tests;
