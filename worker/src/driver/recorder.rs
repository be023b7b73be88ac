//! Records events: redacts them, stamps them with the epoch's clock, adds them to the log, and prints them once they are durable.
//!
//! [`Recorder::make_durable`] is the only call that makes events durable, and the driver makes it before each act that needs them.

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
use tokio::time;

/// How long an event may stay in the buffer while the driver waits.
const MAX_BUFFERED: Duration = Duration::from_millis(200);

/// Records the events of one epoch.
#[derive(Debug)]
pub struct Recorder<F> {
    log: Log<F>,
    clock: RefCell<Clock>,
    printer: RefCell<Printer>,
    redactor: Redactor,
    /// The lines of events that are not durable yet.
    buffered: RefCell<String>,
    /// The time of the first event that is not durable yet.
    buffered_since: Cell<Option<time::Instant>>,
    /// The lines of durable events, which may be printed.
    printable: RefCell<String>,
    /// How long printing has blocked since the last event.
    blocked: Cell<Duration>,
}

impl<F: Files> Recorder<F> {
    /// Creates the recorder of a claimed epoch, and prints the event of the claim. `open` are the calls without an outcome that an
    /// earlier epoch has left. `redactor` removes secrets from events before they are recorded.
    pub fn new(claimed: Claimed<F>, mut printer: Printer, open: &[Call], redactor: Redactor) -> Self {
        for call in open {
            printer.add_call(&call.id, &call.tool);
        }
        let Claimed { log, clock, line, entry } = claimed;
        let mut first = String::new();
        let text_line = printer.text_line(&entry);
        printer.format(&mut first, &text_line, &line);
        printer.print(&first);
        let (clock, printer, printable) = (RefCell::new(clock), RefCell::new(printer), RefCell::default());
        let (buffered, buffered_since, blocked) = (RefCell::default(), Cell::default(), Cell::default());
        Self { log, clock, printer, redactor, buffered, buffered_since, printable, blocked }
    }

    /// Adds an event that has just happened. It is durable after [`Recorder::make_durable`].
    pub fn append(&self, event: Event) -> Result<Entry, Error> {
        let event = self.redacted(event)?;
        self.exclude_from_work(self.blocked.take());
        let stamp = self.clock.borrow_mut().stamp();
        let (line, entry) = self.log.append(event, stamp)?;
        let mut printer = self.printer.borrow_mut();
        let text_line = printer.text_line(&entry);
        printer.format(&mut self.buffered.borrow_mut(), &text_line, &line);
        self.buffered_since.set(self.buffered_since.get().or_else(|| Some(time::Instant::now())));
        Ok(entry)
    }

    /// Returns the last events of the log for people, one line each. Events of parking and resuming are left out. The events are
    /// read from the log, because an earlier attempt may have recorded them.
    pub fn last_events(&self) -> Vec<String> {
        let mut printer = Printer::new(Format::Text, Box::new(io::sink()));
        let mut last: VecDeque<String> = VecDeque::new();
        let read = self.log.reread(|entry| {
            let text_line = printer.text_line(entry);
            if matches!(entry.event, Event::Parked { .. } | Event::EpochStarted { .. }) {
                return;
            }
            if last.len() == ApprovalSpec::MAX_EVENTS {
                last.pop_front();
            }
            last.push_back(bounded(text_line.trim_end(), ApprovalSpec::MAX_EVENT_BYTES));
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

    /// Removes secrets from an event as [`Recorder::append`] does. Use it before a part of the event is stored outside of the log.
    pub fn redacted(&self, event: Event) -> Result<Event, Error> {
        let name = event.name();
        self.redactor.redact_event(event).map_err(|source| Error::Redaction { event: name, source })
    }

    /// Makes all events durable. They are printed later, by [`Recorder::print`] or [`Recorder::close`].
    pub fn make_durable(&self) -> Result<(), Error> {
        self.log.sync()?;
        self.buffered_since.set(None);
        self.printable.borrow_mut().push_str(&self.buffered.take());
        Ok(())
    }

    /// Prints durable events, and closes the log. No event can be added afterwards.
    pub fn close(&mut self) {
        self.print();
        self.printer.get_mut().close();
        self.log.close();
    }

    /// Prints durable events.
    pub fn print(&self) {
        let lines = self.printable.take();
        if !lines.is_empty() {
            let began = Instant::now();
            self.printer.borrow_mut().print(&lines);
            self.blocked.set(self.blocked.get() + began.elapsed());
        }
    }

    /// Returns the latest time at which the events in the buffer must become durable.
    pub fn flush_time(&self) -> time::Instant {
        self.buffered_since.get().unwrap_or_else(time::Instant::now) + MAX_BUFFERED
    }

    /// Returns the position after the last durable event.
    pub fn position(&self) -> LogPosition {
        self.log.position()
    }

    /// Returns the position after the last event, durable or not.
    pub fn end(&self) -> LogPosition {
        self.log.end()
    }

    /// Excludes waiting time from the working time that the next event is stamped with.
    pub fn exclude_from_work(&self, time: Duration) {
        self.clock.borrow_mut().exclude_wait(time);
    }

    /// Returns the file operations that the log uses.
    pub fn files(&self) -> &F {
        self.log.files()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_engine::Conversation;
    use bloomery_engine::event::Directive;
    use bloomery_engine::line::Chain;
    use bloomery_journal::Store;
    use bloomery_journal::files::Disk;
    use bloomery_journal::fixture::{SOURCE, claim_at_once, run};

    #[tokio::test]
    async fn the_buffer_is_flushed_200_ms_after_its_first_event() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(Disk, dir.path(), "k-1", "uid-1").unwrap();
        let mut conversation = Conversation::new(run());
        let claimed = claim_at_once(store, Chain::new(SOURCE), &mut conversation, 1).await.unwrap();
        let printer = Printer::new(Format::Text, Box::new(io::sink()));
        let recorder = Recorder::new(claimed, printer, &[], Redactor::default());
        let append = || {
            let earliest = time::Instant::now() + Duration::from_millis(200);
            recorder.append(Event::DirectiveReceived { directive: Directive::Park }).unwrap();
            earliest..=time::Instant::now() + Duration::from_millis(200)
        };

        let of_first = append();
        let flush_time = recorder.flush_time();
        assert!(of_first.contains(&flush_time), "{flush_time:?} is not in {of_first:?}");
        let _ = append();
        assert_eq!(recorder.flush_time(), flush_time, "a later event does not defer the first one");
        recorder.make_durable().unwrap();
        let of_next = append();
        let flush_time = recorder.flush_time();
        assert!(of_next.contains(&flush_time), "{flush_time:?} is not in {of_next:?}");
    }
}
