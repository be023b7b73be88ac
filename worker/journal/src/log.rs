//! The log of a Job for its writer.

use super::files::Files;
use super::{Error, Store};
use bloomery_crds::v1alpha1::LogPosition;
use bloomery_engine::Event;
use bloomery_engine::line::{Chain, Entry, EventTime};
use std::cell::RefCell;

/// The log of a Job during one epoch of this worker.
#[derive(Debug)]
pub struct Log<F> {
    store: Store<F>,
    /// In a cell, because events are added while an act borrows the file layer.
    end: RefCell<End>,
}

/// The end of the log, where events are added.
#[derive(Debug)]
struct End {
    chain: Chain,
    buffer: String,
    durable: u64,
    over: bool,
}

impl<F: Files> Log<F> {
    pub(super) fn new(store: Store<F>, chain: Chain) -> Self {
        let end = End { durable: chain.events(), chain, buffer: String::new(), over: false };
        Self { store, end: RefCell::new(end) }
    }

    /// Adds an event, and returns its line and its entry. The event is not durable before [`Log::sync`].
    pub fn append(&self, event: Event, stamp: EventTime) -> Result<(String, Entry), Error> {
        let mut end = self.end.borrow_mut();
        if end.over {
            return Err(Error::Over);
        }
        let (line, entry) = end.chain.append(event, stamp)?;
        end.buffer.push_str(&line);
        end.buffer.push('\n');
        Ok((line, entry))
    }

    /// Makes every event durable, as one new segment. Does nothing if there is no new event.
    ///
    /// # Errors
    /// [`Error::Superseded`] if another attempt has taken over. After any error the log cannot be used any more.
    pub fn sync(&self) -> Result<(), Error> {
        let mut end = self.end.borrow_mut();
        if end.over {
            return Err(Error::Over);
        }
        if end.buffer.is_empty() {
            return Ok(());
        }
        let added = self.store.add(end.durable + 1, end.buffer.as_bytes());
        end.over = added.is_err();
        added?;
        end.buffer.clear();
        end.durable = end.chain.events();
        Ok(())
    }

    /// Does the deferred work of the last and the next segment; see [`Store::tidy`].
    pub fn tidy(&self) {
        let end = self.end.borrow();
        if !end.over {
            self.store.tidy(end.durable + 1);
        }
    }

    /// Removes temporary files. Nothing can be added after it.
    pub fn close(&self) {
        self.end.borrow_mut().over = true;
        self.store.close();
    }

    /// Returns the position of the log, including events that are not durable yet.
    pub fn position(&self) -> LogPosition {
        self.end.borrow().chain.position(&self.store.path())
    }

    /// Reads all durable events, from the beginning.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn reread(&self, each: impl FnMut(&Entry)) -> Result<(), Error> {
        let mut anew = self.end.borrow().chain.restarted();
        self.store.read(&mut anew, each)
    }

    /// The file layer below, for what is kept beside the log.
    pub fn files(&self) -> &F {
        self.store.files()
    }
}
