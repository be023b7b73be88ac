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
    /// In a cell, because events are added while the driver's current act borrows the file layer.
    end: RefCell<End>,
}

/// The end of the log, where events are added.
#[derive(Debug)]
struct End {
    /// The position after the last event, durable or not.
    chain: Chain,
    /// The lines that are not durable yet.
    buffer: String,
    /// The position after the last durable event.
    durable: Chain,
    /// Whether the log was closed, or a write failed.
    is_closed: bool,
}

impl<F: Files> Log<F> {
    pub(super) fn new(store: Store<F>, chain: Chain) -> Self {
        let end = End { durable: chain.clone(), chain, buffer: String::new(), is_closed: false };
        Self { store, end: RefCell::new(end) }
    }

    /// Adds an event, and returns its line and its entry. The event is not durable before [`Log::sync`].
    pub fn append(&self, event: Event, stamp: EventTime) -> Result<(String, Entry), Error> {
        let mut end = self.end.borrow_mut();
        if end.is_closed {
            return Err(Error::Closed);
        }
        let (line, entry) = end.chain.append(event, stamp)?;
        end.buffer.push_str(&line);
        end.buffer.push('\n');
        Ok((line, entry))
    }

    /// Makes every event durable, as one new segment. Does nothing if there is no new event.
    ///
    /// # Errors
    /// [`Error::Superseded`] if another attempt has taken the log over. Any error closes the log.
    pub fn sync(&self) -> Result<(), Error> {
        let mut end = self.end.borrow_mut();
        if end.is_closed {
            return Err(Error::Closed);
        }
        if end.buffer.is_empty() {
            return Ok(());
        }
        let added = self.store.add(end.durable.events() + 1, end.buffer.as_bytes());
        end.is_closed = added.is_err();
        added?;
        end.buffer.clear();
        end.durable = end.chain.clone();
        Ok(())
    }

    /// Closes the log. Later appends fail.
    pub fn close(&self) {
        self.end.borrow_mut().is_closed = true;
    }

    /// Returns the position after the last durable event. Only this position may leave the worker.
    pub fn position(&self) -> LogPosition {
        self.end.borrow().durable.position(&self.store.path())
    }

    /// Returns the position after the last event, durable or not.
    pub fn end(&self) -> LogPosition {
        self.end.borrow().chain.position(&self.store.path())
    }

    /// Reads all durable events, from the beginning.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn reread(&self, each: impl FnMut(&Entry)) -> Result<(), Error> {
        let mut chain = self.end.borrow().chain.restarted();
        self.store.read(&mut chain, each)
    }

    /// Returns the file layer, for the files beside the log.
    pub fn files(&self) -> &F {
        self.store.files()
    }
}
