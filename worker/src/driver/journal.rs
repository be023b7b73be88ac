//! The log, stamped by the epoch's clock and printed once it is durable.
//!
//! What need not be done before an act is left until the act is under way, when there is nothing else to do:
//! [`Journal::commit`] makes durable, and [`Journal::tidy`] does the rest.

use crate::printer::{Format, Printer};
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{ApprovalSpec, LogPosition};
use bloomery_engine::Event;
use bloomery_engine::line::Entry;
use bloomery_engine::stages::calls::Call;
use bloomery_journal::clock::Clock;
use bloomery_journal::{Claimed, Error, Log, files::Files};
use bloomery_redact::Redactor;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

/// What the driver records with.
#[derive(Debug)]
pub struct Journal<F> {
    log: Log<F>,
    clock: RefCell<Clock>,
    printer: RefCell<Printer>,
    redactor: Redactor,
    /// What is not durable yet.
    unprinted: RefCell<String>,
    /// What is, and may be printed.
    printable: RefCell<String>,
    /// How long printing has waited for whoever reads, since the last event.
    blocked: Cell<Duration>,
}

impl<F: Files> Journal<F> {
    /// Begins with the line that claimed the epoch, which is durable and printed at once. `open` are the calls that
    /// an earlier epoch has left. No event that is added holds a secret that `redactor` knows.
    pub fn new(claimed: Claimed<F>, mut printer: Printer, open: &[Call], redactor: Redactor) -> Self {
        for call in open {
            printer.learn(&call.id, &call.tool);
        }
        let Claimed { log, clock, line, entry } = claimed;
        let mut first = String::new();
        let gist = printer.gist(&entry);
        printer.put(&mut first, &gist, &line);
        printer.print(&first);
        let (clock, printer, printable) = (RefCell::new(clock), RefCell::new(printer), RefCell::default());
        let (unprinted, blocked) = (RefCell::default(), Cell::default());
        Self { log, clock, printer, redactor, unprinted, printable, blocked }
    }

    /// Adds an event that has just happened. It is not durable before [`Journal::sync`].
    pub fn append(&self, event: Event) -> Result<Entry, Error> {
        let event = self.redacted(event)?;
        self.waited(self.blocked.take());
        let stamp = self.clock.borrow_mut().stamp();
        let (line, entry) = self.log.append(event, stamp)?;
        let mut printer = self.printer.borrow_mut();
        let gist = printer.gist(&entry);
        printer.put(&mut self.unprinted.borrow_mut(), &gist, &line);
        Ok(entry)
    }

    /// The last events of the log, a line each, for people; not that it parked and went on, which led to nothing. They are
    /// read from the log: the attempt that asks may have done nothing else.
    pub fn lately(&self) -> Vec<String> {
        let mut printer = Printer::new(Format::Text, Box::new(io::sink()));
        let mut last: VecDeque<String> = VecDeque::new();
        let read = self.log.reread(|entry| {
            let gist = printer.gist(entry);
            if matches!(entry.event, Event::Parked { .. } | Event::EpochStarted { .. }) {
                return;
            }
            if last.len() == ApprovalSpec::MAX_EVENTS {
                last.pop_front();
            }
            last.push_back(bounded(gist.trim_end(), ApprovalSpec::MAX_EVENT));
        });
        if let Err(error) = read {
            tracing::warn!("what led to the call that is held cannot be read again: {error}");
        }
        last.into()
    }

    /// Adds events that have just happened.
    pub fn append_all(&self, events: Vec<Event>) -> Result<Vec<Entry>, Error> {
        events.into_iter().map(|event| self.append(event)).collect()
    }

    /// An event as it is added, for what is kept of it beside the log.
    pub fn redacted(&self, event: Event) -> Result<Event, Error> {
        let name = event.name();
        self.redactor.event(event).map_err(|source| Error::Secret { event: name, source })
    }

    /// Makes all events durable, then prints them.
    pub fn sync(&self) -> Result<(), Error> {
        self.commit()?;
        self.print();
        Ok(())
    }

    /// Makes all events durable. They are printed by [`Journal::tidy`].
    pub fn commit(&self) -> Result<(), Error> {
        self.log.sync()?;
        self.printable.borrow_mut().push_str(&self.unprinted.take());
        Ok(())
    }

    /// Prints what is durable, and does what the log has left to do.
    pub fn tidy(&self) {
        self.print();
        self.log.tidy();
    }

    /// Prints what is durable, and leaves nothing but the log behind.
    pub fn close(&mut self) {
        self.print();
        self.printer.get_mut().close();
        self.log.close();
    }

    fn print(&self) {
        let lines = self.printable.take();
        if !lines.is_empty() {
            let began = Instant::now();
            self.printer.borrow_mut().print(&lines);
            self.blocked.set(self.blocked.get() + began.elapsed());
        }
    }

    /// Where the log stands, with what is not durable yet.
    pub fn position(&self) -> LogPosition {
        self.log.position()
    }

    /// Takes waiting out of the work of the next event.
    pub fn waited(&self, time: Duration) {
        self.clock.borrow_mut().waited(time);
    }

    /// The file layer below the log.
    pub fn files(&self) -> &F {
        self.log.files()
    }
}
