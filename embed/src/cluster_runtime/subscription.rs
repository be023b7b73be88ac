//! A subscription to the events of a Job: a task merges the window of the feed and the past, and sends the events to the client.

use super::feed::{Place, Task};
use super::past;
use super::window::Next;
use crate::cluster::jobs::Client;
use crate::cluster::{Cluster, Right};
use crate::error::{Error, ErrorKind};
use crate::event::JobEvent;
use bloomery_crds::v1alpha1::Job;
use futures::stream::{self, BoxStream};
use kube::ResourceExt;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::watch;
use tokio::time::Instant;

/// The number of events that wait for the client.
const CAPACITY: usize = 64;

/// The number of events that are taken from the window at once.
const BATCH: usize = 64;

/// The time that a client may take for an event. A client that is slower is dropped, and may connect again.
const MAX_DELAY: Duration = Duration::from_secs(30);

/// The interval at which the rights of a subscriber are checked again.
const CHECK_INTERVAL: Duration = Duration::from_mins(1);

/// The time within which the logs of the pods deliver the events that the status of a Job counts. After it, these events are read from the
/// past: a rotation of the log has removed them.
const DELIVERY_TIME: Duration = Duration::from_secs(10);

/// The number of checks that may fail one after another because the API server cannot be reached. No event is sent meanwhile.
const MAX_FAILED_CHECKS: u32 = 12;

/// The delay before a failed check is repeated.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);

/// An item of the channel to a client.
enum Item {
    /// An event.
    Event(Arc<JobEvent>),
    /// An error, which is the last item.
    Error(Error),
    /// The end of the Job.
    End,
}

/// The subscription of one client.
pub(super) struct Subscription {
    /// The access of the client.
    pub(super) cluster: Cluster,
    /// The Job.
    pub(super) job: Job,
    /// The place in the feed of the Job.
    pub(super) place: Place,
    /// The image of reader pods.
    pub(super) image: Option<String>,
    /// The number of the last event that the client has.
    pub(super) seq: u64,
}

/// The state of a subscription.
struct Pump {
    subscription: Subscription,
    changes: watch::Receiver<()>,
    ready: VecDeque<Arc<JobEvent>>,
    past: Option<Receiver<Result<Arc<JobEvent>, Error>>>,
    next_check: Instant,
    /// The end of the [`DELIVERY_TIME`] of the events that the status of the Job counts.
    overdue_at: Option<Instant>,
    /// True after the last event of the Job.
    has_ended: bool,
}

/// Returns the right to read the logs of the pods of Jobs, which contain their events.
fn to_read_events() -> Right {
    Right::on_pods("get", "pods/log")
}

/// Checks that a caller has the right to read the events of a Job.
///
/// # Errors
/// If the right is missing, or cannot be checked.
pub(super) async fn authorize(cluster: &Cluster, job: &Job) -> Result<(), Error> {
    let hint = "The status and the open requests of the Job need no such right";
    require(cluster, &format!("following the Job {}", job.name_any()), vec![to_read_events()], hint).await
}

/// Checks that a caller has the rights to start a Job and to follow it.
///
/// # Errors
/// If a right is missing, or cannot be checked.
pub(super) async fn authorize_start(cluster: &Cluster) -> Result<(), Error> {
    let mut rights = ["create", "get", "list", "watch"].map(Right::on_jobs).to_vec();
    rights.extend(["list", "watch"].map(|verb| Right::on_pods(verb, "pods")));
    rights.push(to_read_events());
    let hint = "Nothing was started. Who follows no Job needs the right to create it only";
    require(cluster, "starting a Job and following it", rights, hint).await
}

/// Checks that a caller has some rights. `hint` ends the message about the missing ones.
async fn require(cluster: &Cluster, doing: &str, rights: Vec<Right>, hint: &str) -> Result<(), Error> {
    let missing = cluster.missing_rights(rights).await?;
    if missing.is_empty() {
        return Ok(());
    }
    let (namespace, missing) = (&cluster.namespace, Right::descriptions(&missing));
    Err(Error::new(ErrorKind::Forbidden, format!("{doing}: missing in the namespace {namespace}: {missing}. {hint}")))
}

/// Checks that a caller can still read a Job and its events. Returns the Job.
///
/// # Errors
/// If a right is missing or cannot be checked, or the Job is deleted.
async fn reauthorize(cluster: &Cluster, job: &Job) -> Result<Job, Error> {
    let job = Client::new(cluster.clone()).reread(job).await?;
    authorize(cluster, &job).await?;
    Ok(job)
}

/// Returns the events for a client. The caller has read the Job and called [`authorize`] just before.
pub(super) fn stream(subscription: Subscription) -> BoxStream<'static, Result<Arc<JobEvent>, Error>> {
    let (sender, receiver) = channel(CAPACITY);
    let task = Task(tokio::spawn(Pump::new(subscription).run(sender, MAX_DELAY)).abort_handle());
    Box::pin(stream::unfold(Some((receiver, task)), receive))
}

type Receiving = Option<(Receiver<Item>, Task)>;

/// Returns the next event or error. An error ends the stream.
async fn receive(receiving: Receiving) -> Option<(Result<Arc<JobEvent>, Error>, Receiving)> {
    let (mut receiver, task) = receiving?;
    match receiver.recv().await {
        Some(Item::Event(event)) => Some((Ok(event), Some((receiver, task)))),
        Some(Item::Error(error)) => Some((Err(error), None)),
        Some(Item::End) => None,
        None => {
            let message = "the client is too slow for the events: connect again after the last event that it has";
            Some((Err(Error::new(ErrorKind::Unavailable, message)), None))
        }
    }
}

impl Pump {
    fn new(subscription: Subscription) -> Self {
        let changes = subscription.place.feed.changes();
        let now = Instant::now();
        let (next_check, overdue_at) = (now + CHECK_INTERVAL, Some(now + DELIVERY_TIME));
        Self { subscription, changes, ready: VecDeque::new(), past: None, next_check, overdue_at, has_ended: false }
    }

    /// Sends the events until the Job or the subscription ends. A client that takes longer than `max_delay` for an event finds the channel
    /// closed.
    async fn run(mut self, sender: Sender<Item>, max_delay: Duration) {
        loop {
            let item = match self.next().await {
                Ok(Some(event)) => Item::Event(event),
                Ok(None) => Item::End,
                Err(error) => Item::Error(error),
            };
            let is_end = match &item {
                Item::Event(event) => {
                    (self.subscription.seq, self.has_ended) = (event.seq, event.is_last);
                    false
                }
                Item::Error(_) | Item::End => true,
            };
            if sender.send_timeout(item, max_delay).await.is_err() || is_end {
                return;
            }
        }
    }

    /// Returns the next event, once it is there; `None` after the last one.
    ///
    /// # Errors
    /// If the client lacks a right, or the event cannot be read.
    async fn next(&mut self) -> Result<Option<Arc<JobEvent>>, Error> {
        loop {
            if Instant::now() >= self.next_check {
                self.check().await?;
            }
            if self.overdue_at.is_some_and(|at| Instant::now() >= at) {
                self.overdue_at = None;
                self.subscription.place.feed.expect(&self.subscription.job);
            }
            if self.has_ended {
                return Ok(None);
            }
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if let Some(past) = &mut self.past {
                match past.recv().await.transpose()? {
                    Some(event) => self.take_past(event)?,
                    None => self.past = None,
                }
                continue;
            }
            self.changes.borrow_and_update();
            let Subscription { cluster, job, place, image, seq } = &self.subscription;
            match place.feed.after(*seq, BATCH)? {
                Next::Events(events) => self.ready.extend(events),
                Next::Past => {
                    let feed = Arc::clone(&place.feed);
                    self.past = Some(past::read(feed, cluster.clone(), job.clone(), image.clone(), *seq));
                }
                Next::End => return Ok(None),
                Next::Wait => {
                    // A timeout is the time of the next check, or of overdue events. The sender lives as long as the feed.
                    let end = self.overdue_at.map_or(self.next_check, |at| at.min(self.next_check));
                    let _ = tokio::time::timeout_at(end, self.changes.changed()).await;
                }
            }
        }
    }

    /// Takes an event of the past, if it is the next one.
    ///
    /// # Errors
    /// If an event is missing before it.
    fn take_past(&mut self, event: Arc<JobEvent>) -> Result<(), Error> {
        let next = self.subscription.seq + 1;
        if event.seq > next {
            let name = self.subscription.job.name_any();
            return Err(Error::failed(format!("the event {next} of the Job {name} is missing in the memory")));
        }
        if event.seq == next {
            self.ready.push_back(event);
        }
        Ok(())
    }

    /// Checks the rights of the client again. Waits while the API server cannot be reached.
    ///
    /// # Errors
    /// If the client now lacks a right, or the API server cannot be reached for too long.
    async fn check(&mut self) -> Result<(), Error> {
        let Subscription { cluster, job, .. } = &self.subscription;
        let mut failures = 0;
        let job = loop {
            match reauthorize(cluster, job).await {
                Ok(job) => break job,
                Err(error) if error.kind != ErrorKind::Unavailable => return Err(error),
                Err(error) => {
                    failures += 1;
                    if failures >= MAX_FAILED_CHECKS {
                        return Err(error);
                    }
                }
            }
            tokio::time::sleep(RETRY_INTERVAL).await;
        };
        self.subscription.job = job;
        let now = Instant::now();
        (self.next_check, self.overdue_at) = (now + CHECK_INTERVAL, Some(now + DELIVERY_TIME));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cluster_runtime::ClusterTenant;
    use crate::cluster_runtime::tests::{Setup, lines, running};
    use bloomery_engine::Event;
    use bloomery_engine::event::CallId;
    use bloomery_engine::line::{Entry, EventTime};
    use futures::StreamExt;
    use rstest::rstest;

    #[rstest]
    #[case::the_end(Some(Item::End), None)]
    #[case::an_error(Some(Item::Error(Error::failed("broken"))), Some(ErrorKind::Failed))]
    #[case::a_client_that_is_too_slow(None, Some(ErrorKind::Unavailable))]
    #[tokio::test]
    async fn a_stream_ends_with_the_job_or_an_error(#[case] last: Option<Item>, #[case] expected: Option<ErrorKind>) {
        let (sender, receiver) = channel(CAPACITY);
        let stamp = EventTime { time: "2027-01-15T08:00:00Z".into(), elapsed_ms: 1 };
        let entry = Entry { seq: 7, stamp, event: Event::ToolStarted { call: CallId::new(1, 0) } };
        let event = JobEvent::new("/refund", &entry).unwrap();
        for item in std::iter::once(Item::Event(Arc::new(event.clone()))).chain(last) {
            sender.try_send(item).ok().unwrap();
        }
        drop(sender);
        let task = Task(tokio::spawn(async {}).abort_handle());
        let mut events: Vec<_> = stream::unfold(Some((receiver, task)), receive).collect().await;
        assert_eq!(events.remove(0), Ok(Arc::new(event)));
        assert_eq!(events.pop().map(|last| last.unwrap_err().kind), expected);
        assert!(events.is_empty());
    }

    /// Returns a subscription to a running Job after an event. Three events of the Job are there.
    async fn subscription(setup: &Setup, seq: u64) -> Subscription {
        setup.put_job(&running(0));
        let ClusterTenant { shared, cluster } = setup.open("ada").await;
        let job = Client::new(cluster.clone()).job("refund").await.unwrap();
        let place = shared.hub.enter(&cluster, &job);
        for line in lines(3) {
            place.feed.add(line.trim_end().as_bytes()).unwrap();
        }
        Subscription { cluster, job, place, image: None, seq }
    }

    #[rstest]
    #[case::on_the_events("get pods/log", "the verb get on pods/log")]
    #[case::on_the_job("get skilljobs", "the verb get on skilljobs")]
    #[tokio::test]
    async fn a_right_that_is_withdrawn_ends_the_stream(#[case] right: &str, #[case] says: &str) {
        let setup = Setup::new().await;
        let mut pump = Pump::new(subscription(&setup, 0).await);
        assert_eq!(pump.next().await.unwrap().unwrap().seq, 1);
        setup.api.deny(&[right]);
        pump.next_check = Instant::now();
        let error = pump.next().await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Forbidden);
        assert!(error.message.contains(says), "{error}");
    }

    #[tokio::test]
    async fn a_slow_client_is_dropped_and_goes_on_after_its_last_event() {
        let setup = Setup::new().await;
        let (sender, receiver) = channel(1);
        // The client takes nothing, so there is no room for the second event.
        Pump::new(subscription(&setup, 0).await).run(sender, Duration::ZERO).await;
        let task = Task(tokio::spawn(async {}).abort_handle());
        let events: Vec<_> = stream::unfold(Some((receiver, task)), receive).collect().await;
        let [Ok(last), Err(error)] = &events[..] else { panic!("{events:?}") };
        assert_eq!((last.seq, error.kind), (1, ErrorKind::Unavailable));
        let mut rest = Pump::new(subscription(&setup, last.seq).await);
        assert_eq!(rest.next().await.unwrap().unwrap().seq, 2);
    }
}
