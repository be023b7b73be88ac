//! Records events: redacts them, stamps them with the epoch's clock, logs them, and prints them once they are durable.
//!
//! Before an act, [`Recorder::commit`] only makes events durable. [`Recorder::tidy`] does the rest while the act waits.

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

/// Records the events of one epoch.
#[derive(Debug)]
pub struct Recorder<F> {
    log: Log<F>,
    clock: RefCell<Clock>,
    printer: RefCell<Printer>,
    redactor: Redactor,
    /// The lines of events that are not durable yet.
    uncommitted: RefCell<String>,
    /// The lines of durable events, which may be printed.
    printable: RefCell<String>,
    /// How long printing has blocked since the last event.
    blocked: Cell<Duration>,
}

impl<F: Files> Recorder<F> {
    /// Creates the recorder of a claimed epoch, and prints the event of the claim. `open` are the calls that an earlier epoch
    /// has left open. Events are recorded without the secrets that `redactor` knows.
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
        let (uncommitted, blocked) = (RefCell::default(), Cell::default());
        Self { log, clock, printer, redactor, uncommitted, printable, blocked }
    }

    /// Adds an event that has just happened. It is durable after [`Recorder::commit`] or [`Recorder::sync`].
    pub fn append(&self, event: Event) -> Result<Entry, Error> {
        let event = self.redacted(event)?;
        self.waited(self.blocked.take());
        let stamp = self.clock.borrow_mut().stamp();
        let (line, entry) = self.log.append(event, stamp)?;
        let mut printer = self.printer.borrow_mut();
        let gist = printer.gist(&entry);
        printer.put(&mut self.uncommitted.borrow_mut(), &gist, &line);
        Ok(entry)
    }

    /// Returns the last events of the log for people, one line each, without those of parking and continuing. It reads them
    /// from the log, because an earlier attempt may have recorded them.
    pub fn last_events(&self) -> Vec<String> {
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
            tracing::warn!("the last events before the held call cannot be read: {error}");
        }
        last.into()
    }

    /// Adds events that have just happened.
    pub fn append_all(&self, events: Vec<Event>) -> Result<Vec<Entry>, Error> {
        events.into_iter().map(|event| self.append(event)).collect()
    }

    /// Returns an event as [`Recorder::append`] would record it, for content that is stored beside the log.
    pub fn redacted(&self, event: Event) -> Result<Event, Error> {
        let name = event.name();
        self.redactor.redact_event(event).map_err(|source| Error::Redaction { event: name, source })
    }

    /// Makes all events durable, then prints them.
    pub fn sync(&self) -> Result<(), Error> {
        self.commit()?;
        self.print();
        Ok(())
    }

    /// Makes all events durable. [`Recorder::tidy`] prints them.
    pub fn commit(&self) -> Result<(), Error> {
        self.log.sync()?;
        self.printable.borrow_mut().push_str(&self.uncommitted.take());
        Ok(())
    }

    /// Prints durable events.
    pub fn tidy(&self) {
        self.print();
    }

    /// Prints durable events, and closes the log. Nothing can be added after it.
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

    /// Returns the position of the log, including events that are not durable yet.
    pub fn position(&self) -> LogPosition {
        self.log.position()
    }

    /// Excludes time spent waiting from the work of the next event.
    pub fn waited(&self, time: Duration) {
        self.clock.borrow_mut().exclude_wait(time);
    }

    /// Returns the file layer below the log.
    pub fn files(&self) -> &F {
        self.log.files()
    }
}
