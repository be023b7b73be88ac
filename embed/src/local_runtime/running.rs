//! The Jobs that this process drives.

use crate::error::{Error, ErrorKind};
use crate::local_runtime::feed::{Feed, Feeds};
use crate::local_runtime::inbox::{Inbox, Letter, TakenLetters};
use crate::local_runtime::jobs::Log;
use bloomery_redact::Redactor;
use bloomery_worker::printer::event_of_line;
use bloomery_worker::stop::{Stop, StopReason};
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::UnboundedSender;

/// The largest number of Jobs of a tenant that run at the same time, without their children. Each has a thread.
const MAX_RUNNING: usize = 64;

/// The names of the events that record statements of people.
const STATEMENTS: [&str; 4] = ["tool.approved", "tool.denied", "user.message", "user.replied"];

/// The Jobs that this process drives, by key.
#[derive(Debug, Default)]
pub(super) struct RunningJobs {
    state: Mutex<State>,
    /// The feeds of Jobs with subscribers, also of those that this process does not drive.
    feeds: Feeds,
}

#[derive(Debug, Default)]
struct State {
    jobs: BTreeMap<String, RunningJob>,
    /// True after the tenant was closed.
    is_closed: bool,
}

/// The ways to reach the thread of a Job.
#[derive(Debug)]
struct RunningJob {
    letters: UnboundedSender<Letter>,
    stop: Stop,
}

/// The place of a Job among the running ones. Dropping it frees the place.
#[derive(Debug)]
pub(super) struct Place {
    jobs: Arc<RunningJobs>,
    key: String,
    /// The inbox of the Job.
    pub(super) inbox: Inbox,
    /// The requests to stop the Job.
    pub(super) stop: Stop,
}

impl RunningJobs {
    /// Checks that another Job may run.
    ///
    /// # Errors
    /// If the tenant is closed, or too many Jobs run.
    pub(super) fn check_capacity(&self) -> Result<(), Error> {
        self.state().check_capacity()
    }

    /// Takes a place for a Job. Returns `None` if the Job runs already. `redactor` is that of its driver.
    ///
    /// # Errors
    /// As [`RunningJobs::check_capacity`].
    pub(super) fn take_place(self: &Arc<Self>, key: &str, redactor: Redactor) -> Result<Option<Place>, Error> {
        let mut state = self.state();
        if state.jobs.contains_key(key) {
            return Ok(None);
        }
        state.check_capacity()?;
        let ((letters, inbox), stop) = (Inbox::new(redactor), Stop::default());
        state.jobs.insert(key.to_owned(), RunningJob { letters, stop: stop.clone() });
        Ok(Some(Place { jobs: Arc::clone(self), key: key.to_owned(), inbox, stop }))
    }

    /// Passes a letter to a Job. Returns the letter if the Job does not run.
    pub(super) fn deliver(&self, key: &str, letter: Letter) -> Option<Letter> {
        let state = self.state();
        let Some(running) = state.jobs.get(key) else { return Some(letter) };
        running.letters.send(letter).err().map(|unsent| unsent.0)
    }

    /// Requests that a Job is cancelled. Returns the sender for its inbox, which is closed when its thread ends; none if the Job does not
    /// run.
    pub(super) fn cancel(&self, key: &str) -> Option<UnboundedSender<Letter>> {
        let state = self.state();
        let running = state.jobs.get(key)?;
        running.stop.request(StopReason::Cancelled);
        Some(running.letters.clone())
    }

    /// Returns the feed of a Job. `log` is its log, which is read from the beginning if the Job has no feed yet.
    pub(super) fn feed(self: &Arc<Self>, key: &str, log: Log) -> Arc<Feed> {
        let (jobs, driven) = (Arc::clone(self), key.to_owned());
        self.feeds.join(key, log, move || jobs.is_running(&driven))
    }

    /// Parks all Jobs after their current step, and accepts no other ones.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        for running in state.jobs.values() {
            running.stop.request(StopReason::Drain);
        }
    }

    /// Returns whether this process drives a Job.
    pub(super) fn is_running(&self, key: &str) -> bool {
        self.state().jobs.contains_key(key)
    }

    /// Returns whether no Job runs.
    pub(super) fn is_idle(&self) -> bool {
        self.state().jobs.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn check_capacity(&self) -> Result<(), Error> {
        if self.is_closed {
            return Err(Error::new(ErrorKind::Unavailable, "the tenant is closed: start the runtime again"));
        }
        if self.jobs.len() >= MAX_RUNNING {
            let message = format!(
                "{MAX_RUNNING} Jobs of the tenant run or wait for people: try again when one of them has ended"
            );
            return Err(Error::new(ErrorKind::Unavailable, message));
        }
        Ok(())
    }
}

impl Place {
    /// Returns the receiver of the lines of the Job's durable events.
    pub(super) fn printed(&self) -> Printed {
        Printed { jobs: Arc::clone(&self.jobs), key: self.key.clone(), taken: self.inbox.taken.clone() }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.jobs.state().jobs.remove(&self.key);
        // From now on, another process may write the log.
        self.jobs.feeds.wake(&self.key);
    }
}

/// Receives the lines of the durable events of a Job and its children: wakes the feed of the Job, and confirms the letters of people.
#[derive(Debug, Clone)]
pub(super) struct Printed {
    jobs: Arc<RunningJobs>,
    key: String,
    taken: TakenLetters,
}

impl Write for Printed {
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(lines);
        if text.lines().filter_map(event_of_line).any(|(name, _)| STATEMENTS.contains(&name)) {
            self.taken.confirm();
        }
        self.jobs.feeds.wake(&self.key);
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_engine::Event;
    use bloomery_engine::people::Statement;
    use bloomery_worker::driver::People;

    fn message() -> Statement {
        Statement::Message { text: "hi".into(), by: "ada".into(), nth: None }
    }

    fn take_place(jobs: &Arc<RunningJobs>, key: &str) -> Result<Option<Place>, Error> {
        jobs.take_place(key, Redactor::default())
    }

    #[tokio::test]
    async fn a_job_runs_once_and_can_be_reached_while_it_runs() {
        let jobs = Arc::new(RunningJobs::default());
        let place = take_place(&jobs, "k").unwrap().unwrap();
        assert!(take_place(&jobs, "k").unwrap().is_none());
        assert!(jobs.deliver("k", Letter::new(message()).0).is_none());
        assert_eq!(place.inbox.take_statements(), [message()]);
        let inbox = jobs.cancel("k").unwrap();
        assert_eq!(place.stop.requested().map(|request| request.reason), Some(StopReason::Cancelled));
        assert!(!inbox.is_closed());
        drop(place);
        inbox.closed().await;
        assert!(jobs.is_idle() && jobs.cancel("k").is_none());
        assert!(jobs.deliver("k", Letter::new(message()).0).is_some());
    }

    #[tokio::test]
    async fn a_statement_is_confirmed_with_the_line_of_its_event() {
        let jobs = Arc::new(RunningJobs::default());
        let place = take_place(&jobs, "k").unwrap().unwrap();
        let (letter, mut recorded) = Letter::new(message());
        assert!(jobs.deliver("k", letter).is_none());
        assert_eq!(place.inbox.take_statements(), [message()]);
        let mut printed = place.printed();
        printed.write_all(b"2026-01-02T03:04:05.678Z   17 tool.started        14-0 user.message\n").unwrap();
        assert!(recorded.try_recv().is_err());
        printed.write_all(b"2026-01-02T03:04:05.678Z   18 user.message        ada: hi\n").unwrap();
        assert_eq!(recorded.await, Ok(Event::from(message())));
    }

    #[test]
    fn the_number_of_running_jobs_is_bounded() {
        let jobs = Arc::new(RunningJobs::default());
        let places: Vec<_> = (0..MAX_RUNNING).map(|n| take_place(&jobs, &n.to_string()).unwrap().unwrap()).collect();
        assert_eq!(take_place(&jobs, "k").unwrap_err().kind, ErrorKind::Unavailable);
        drop(places);
        assert!(take_place(&jobs, "k").unwrap().is_some());
    }

    #[test]
    fn a_closed_tenant_parks_its_jobs_and_starts_none() {
        let jobs = Arc::new(RunningJobs::default());
        let place = take_place(&jobs, "k").unwrap().unwrap();
        jobs.close();
        assert_eq!(place.stop.requested().map(|request| request.reason), Some(StopReason::Drain));
        assert_eq!(take_place(&jobs, "other").unwrap_err().kind, ErrorKind::Unavailable);
    }
}
