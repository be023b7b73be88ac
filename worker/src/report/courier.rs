//! The task that carries the latest news to the operator, for as long as it takes.

use super::client::{Client, Failure};
use super::news::{News, due};
use crate::backoff::Backoff;
use crate::stop::{Stop, Why};
use bloomery_crds::report::Report;
use bloomery_crds::run::JobIdentity;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How soon a report is sent again that the operator wants again.
const AGAIN: Duration = Duration::from_millis(500);

/// Who reports.
#[derive(Debug, Clone)]
pub struct Sender {
    /// Which Job.
    pub job: JobIdentity,
    /// Which attempt.
    pub attempt: u32,
    /// The epoch that it has claimed.
    pub epoch: u64,
}

/// What the operator has said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Heard {
    /// How many events it has safely.
    pub ack: u64,
    /// It has taken the news of the end, and all events.
    pub end: bool,
}

/// Carries news from a worker to the operator.
#[derive(Debug)]
pub(super) struct Courier {
    pub client: Client,
    pub sender: Sender,
    pub news: watch::Receiver<News>,
    pub heard: watch::Sender<Heard>,
    pub stop: Stop,
}

impl Courier {
    /// Tells the latest news until the end of all is told, the operator says that this attempt is superseded, or
    /// nobody is left to have news. News that are overtaken by later ones are never told.
    pub async fn run(mut self) {
        let mut told: Option<(News, Instant)> = None;
        let mut failures = Failures::default();
        loop {
            let news = self.news.borrow_and_update().clone();
            let due = due(&news, told.as_ref().map(|(news, at)| (news, *at)));
            let Some(due) = due.map(|at| at.max(failures.not_before)) else {
                match self.news.changed().await {
                    Ok(()) => continue,
                    Err(_) => return,
                }
            };
            tokio::select! {
                () = tokio::time::sleep_until(due) => {}
                changed = self.news.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return,
                },
            }
            match self.send(&news).await {
                Ok(true) => return,
                Ok(false) => {
                    failures.healed();
                    told = Some((news, Instant::now()));
                }
                Err(Failure::Superseded(message)) => {
                    tracing::warn!("{}", Failure::Superseded(message));
                    self.stop.ask(Why::Superseded);
                    return;
                }
                Err(failure) => failures.add(&failure),
            }
        }
    }

    /// Sends one report; gives whether it was the last.
    async fn send(&self, news: &News) -> Result<bool, Failure> {
        let Sender { job, attempt, epoch } = self.sender.clone();
        let News { projection, waiting, end } = news.clone();
        let events = projection.log.events;
        let is_end = end.is_some();
        let ack = self.client.send(&Report { job, attempt, epoch, projection, waiting, end }).await?.ack;
        let complete = ack >= events;
        self.heard.send_if_modified(|heard| {
            let now = super::courier::Heard { ack: heard.ack.max(ack), end: heard.end || (is_end && complete) };
            std::mem::replace(heard, now) != now
        });
        if complete {
            return Ok(is_end);
        }
        let message = format!("it has {ack} of {events} events");
        Err(Failure::Again { status: reqwest::StatusCode::OK, message })
    }
}

/// What went wrong lately.
#[derive(Debug)]
struct Failures {
    not_before: Instant,
    backoff: Backoff,
    latest: Option<String>,
}

impl Default for Failures {
    fn default() -> Self {
        let backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(10));
        Self { not_before: Instant::now(), backoff, latest: None }
    }
}

impl Failures {
    fn add(&mut self, failure: &Failure) {
        let pause = if matches!(failure, Failure::Again { .. }) { AGAIN } else { self.backoff.pause() };
        self.not_before = Instant::now() + pause;
        let text = failure.to_string();
        if self.latest.as_ref() != Some(&text) {
            tracing::warn!("a report was not taken, and is sent again: {text}");
            self.latest = Some(text);
        }
    }

    fn healed(&mut self) {
        self.backoff.reset();
        if self.latest.take().is_some() {
            tracing::info!("reports are taken again");
        }
    }
}
