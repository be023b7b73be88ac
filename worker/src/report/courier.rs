//! The task that carries the latest news to the operator, for as long as it takes.

use super::client::{Client, Failure};
use super::news::{News, Told, due};
use crate::backoff::Backoff;
use crate::driver::Decided;
use crate::stop::{Stop, Why};
use bloomery_crds::report::{Directives, PodEnd, Report};
use bloomery_crds::run::JobIdentity;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::time::Instant;

/// How soon a report is sent again that the operator wants again.
const AGAIN: Duration = Duration::from_millis(500);

/// How often a report is sent again so soon, in a row.
const SOON: u32 = 8;

/// How many refusals in a row end the telling of an end.
const HOPELESS: u32 = 4;

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

/// Carries news from a worker to the operator.
#[derive(Debug)]
pub(super) struct Courier {
    pub client: Client,
    pub sender: Sender,
    pub news: watch::Receiver<News>,
    /// Set once the operator has taken the news of the end, and acknowledged all events.
    pub end_heard: watch::Sender<bool>,
    pub stop: Stop,
    /// Where what people have said is put.
    pub inbox: Arc<Decided>,
}

impl Courier {
    /// Tells the latest news, and again and again that there are none, until the end of all is told, the operator says that
    /// this attempt is superseded, or nobody is left to have news. News that are overtaken by later ones are never told.
    pub async fn run(mut self) {
        let first = Instant::now();
        let mut told: Option<Told> = None;
        let mut failures = Failures::default();
        loop {
            let due = due(&self.news.borrow_and_update(), told.as_ref(), first).max(failures.not_before);
            let changed = tokio::select! {
                () = tokio::time::sleep_until(due) => None,
                changed = self.news.changed() => Some(changed),
            };
            match changed {
                Some(Ok(())) => continue,
                Some(Err(_)) => return,
                None => {}
            }
            let news = self.news.borrow_and_update().clone();
            match self.send(&news).await {
                Ok(_) if news.end.is_none() => {
                    failures.healed();
                    told = Some(Told { news, at: Instant::now() });
                }
                Ok(true) => return,
                Ok(false) => failures.add(&Failure::Unacknowledged),
                Err(failure @ Failure::Superseded(_)) => {
                    tracing::warn!("{failure}");
                    return self.stop.ask(Why::Superseded);
                }
                Err(failure) => {
                    failures.add(&failure);
                    if news.end.is_some() && failures.are_final() {
                        return;
                    }
                }
            }
        }
    }

    /// Sends one report; gives whether the operator has acknowledged all events in it, or wants no more of them.
    async fn send(&self, news: &News) -> Result<bool, Failure> {
        let Sender { job, attempt, epoch } = self.sender.clone();
        let News { projection, waiting, hold, end } = news.clone();
        let (events, is_end) = (projection.log.events, end.is_some());
        let parks = matches!(end, Some(PodEnd::Parked(_)));
        let report = Report { job, attempt, epoch, projection, waiting, hold, end };
        let directives = self.client.send(&report).await?;
        // That it parked is nothing to a Job that ends.
        let acknowledged = directives.ack >= events || (parks && (directives.cancel || directives.skill_deleted));
        self.hear(directives);
        if is_end && acknowledged {
            self.end_heard.send_replace(true);
        }
        Ok(acknowledged)
    }

    /// Hands on what the operator says. It says the same with every reply, as long as it is so: only the first counts.
    fn hear(&self, said: Directives) {
        if said.cancel {
            self.stop.ask(Why::Cancelled);
        }
        if said.skill_deleted {
            self.stop.ask(Why::SkillDeleted);
        }
        if said.park {
            self.stop.ask(Why::Suspended);
        }
        self.inbox.put(said.replies);
    }
}

/// What went wrong lately.
#[derive(Debug)]
struct Failures {
    not_before: Instant,
    backoff: Backoff,
    soon: u32,
    latest: Option<String>,
    /// How many in a row will not heal.
    hopeless: u32,
}

impl Default for Failures {
    fn default() -> Self {
        let backoff = Backoff::new(Duration::from_millis(500), Duration::from_secs(10));
        Self { not_before: Instant::now(), backoff, soon: 0, latest: None, hopeless: 0 }
    }
}

impl Failures {
    fn add(&mut self, failure: &Failure) {
        self.soon = if failure.is_soon_over() { self.soon + 1 } else { 0 };
        let pause = if (1..=SOON).contains(&self.soon) { AGAIN } else { self.backoff.pause() };
        self.hopeless = if failure.is_hopeless() { self.hopeless + 1 } else { 0 };
        self.not_before = Instant::now() + pause;
        let text = failure.to_string();
        if self.latest.as_ref() != Some(&text) {
            tracing::warn!("a report was not taken, and is sent again: {text}");
            self.latest = Some(text);
        }
    }

    /// Whether the operator will go on refusing. One refusal proves nothing: its view may be older than ours.
    fn are_final(&self) -> bool {
        self.hopeless >= HOPELESS
    }

    fn healed(&mut self) {
        self.backoff.reset();
        (self.soon, self.hopeless) = (0, 0);
        if self.latest.take().is_some() {
            tracing::info!("reports are taken again");
        }
    }
}
