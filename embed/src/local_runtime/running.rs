//! The Jobs that this process drives.

use crate::error::{Error, ErrorKind};
use crate::local_runtime::inbox::Inbox;
use bloomery_engine::people::Statement;
use bloomery_worker::stop::{Stop, StopReason};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::mpsc::UnboundedSender;

/// The largest number of Jobs of a tenant that run at the same time, without their children. Each has a thread.
const MAX_RUNNING: usize = 64;

/// The Jobs that this process drives, by key.
#[derive(Debug, Default)]
pub(super) struct RunningJobs(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    jobs: BTreeMap<String, RunningJob>,
    /// True after the tenant was closed.
    is_closed: bool,
}

/// The ways to reach the thread of a Job.
#[derive(Debug)]
struct RunningJob {
    statements: UnboundedSender<Statement>,
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

    /// Takes a place for a Job. Returns `None` if the Job runs already.
    ///
    /// # Errors
    /// As [`RunningJobs::check_capacity`].
    pub(super) fn take_place(self: &Arc<Self>, key: &str) -> Result<Option<Place>, Error> {
        let mut state = self.state();
        if state.jobs.contains_key(key) {
            return Ok(None);
        }
        state.check_capacity()?;
        let ((statements, inbox), stop) = (Inbox::new(), Stop::default());
        state.jobs.insert(key.to_owned(), RunningJob { statements, stop: stop.clone() });
        Ok(Some(Place { jobs: Arc::clone(self), key: key.to_owned(), inbox, stop }))
    }

    /// Passes a statement to a Job. Returns the statement if the Job does not run.
    pub(super) fn deliver(&self, key: &str, statement: Statement) -> Option<Statement> {
        let state = self.state();
        let Some(running) = state.jobs.get(key) else { return Some(statement) };
        running.statements.send(statement).err().map(|unsent| unsent.0)
    }

    /// Requests that a Job is cancelled. Returns false if the Job does not run.
    pub(super) fn cancel(&self, key: &str) -> bool {
        let state = self.state();
        let running = state.jobs.get(key);
        running.inspect(|running| running.stop.request(StopReason::Cancelled)).is_some()
    }

    /// Parks all Jobs after their current step, and accepts no other ones.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        for running in state.jobs.values() {
            running.stop.request(StopReason::Drain);
        }
    }

    /// Returns whether a Job runs.
    pub(super) fn contains(&self, key: &str) -> bool {
        self.state().jobs.contains_key(key)
    }

    /// Returns whether no Job runs.
    pub(super) fn is_idle(&self) -> bool {
        self.state().jobs.is_empty()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
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

impl Drop for Place {
    fn drop(&mut self) {
        self.jobs.state().jobs.remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bloomery_worker::driver::People;

    fn message() -> Statement {
        Statement::Message { text: "hi".into(), by: "ada".into(), nth: None }
    }

    #[test]
    fn a_job_runs_once_and_can_be_reached_while_it_runs() {
        let jobs = Arc::new(RunningJobs::default());
        let place = jobs.take_place("k").unwrap().unwrap();
        assert!(jobs.take_place("k").unwrap().is_none());
        assert_eq!(jobs.deliver("k", message()), None);
        assert_eq!(place.inbox.take_statements(), [message()]);
        assert!(jobs.cancel("k"));
        assert_eq!(place.stop.requested().map(|request| request.reason), Some(StopReason::Cancelled));
        drop(place);
        assert!(jobs.is_idle() && !jobs.cancel("k"));
        assert_eq!(jobs.deliver("k", message()), Some(message()));
    }

    #[test]
    fn the_number_of_running_jobs_is_bounded() {
        let jobs = Arc::new(RunningJobs::default());
        let places: Vec<_> = (0..MAX_RUNNING).map(|n| jobs.take_place(&n.to_string()).unwrap().unwrap()).collect();
        assert_eq!(jobs.take_place("k").unwrap_err().kind, ErrorKind::Unavailable);
        drop(places);
        assert!(jobs.take_place("k").unwrap().is_some());
    }

    #[test]
    fn a_closed_tenant_parks_its_jobs_and_starts_none() {
        let jobs = Arc::new(RunningJobs::default());
        let place = jobs.take_place("k").unwrap().unwrap();
        jobs.close();
        assert_eq!(place.stop.requested().map(|request| request.reason), Some(StopReason::Drain));
        assert_eq!(jobs.take_place("other").unwrap_err().kind, ErrorKind::Unavailable);
    }
}
