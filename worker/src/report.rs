//! Telling the operator how the run goes (`docs/explanation/engine.md`, section 6).
//!
//! A task beside the loop carries the latest projection of the log to the operator. It never holds the run up: if
//! the operator is away the run goes on, and only the end waits, for a while, for an acknowledgement.

mod client;
mod courier;
mod news;

pub use client::Client;
pub use courier::Sender;

use crate::driver::{Audience, Decided};
use crate::stop::Stop;
use bloomery_crds::report::{ExternalWait, HeldCallDetails, PodEnd, Projection};
use courier::Courier;
use news::News;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;

/// Where a run leaves its news.
#[derive(Debug)]
pub struct Reporter {
    news: watch::Sender<News>,
    end_heard: watch::Receiver<bool>,
}

impl Reporter {
    /// Starts to report, first of all that the epoch was claimed. `stop` is asked for where the operator says that
    /// another attempt has taken over, that the Job is cancelled, or that its namespace is suspended; what people have said
    /// goes into the inbox.
    pub fn start(client: Client, sender: Sender, first: Projection, stop: Stop, inbox: Arc<Decided>) -> Self {
        let (news, latest) = watch::channel(News { projection: first, waiting: None, hold: None, end: None });
        let (hears, end_heard) = watch::channel(false);
        tokio::spawn(Courier { client, sender, news: latest, end_heard: hears, stop, inbox }.run());
        Self { news, end_heard }
    }

    /// Leaves what people need to know of the call that the pod ends because of: it is told with the end.
    pub fn held(&self, hold: HeldCallDetails) {
        self.change(|news| set(&mut news.hold, Some(hold)));
    }

    /// Tells how the pod ends, and waits until the operator has acknowledged all of the log; gives whether it has.
    pub async fn end(mut self, projection: Projection, end: PodEnd, within: Duration) -> bool {
        self.change(|news| {
            let hold = news.hold.take();
            set(news, News { projection, waiting: None, end: Some(end), hold })
        });
        let told = tokio::time::timeout(within, self.end_heard.wait_for(|heard| *heard)).await;
        matches!(told, Ok(Ok(_)))
    }

    fn change(&self, change: impl FnOnce(&mut News) -> bool) {
        self.news.send_if_modified(change);
    }
}

impl Audience for Reporter {
    fn tell(&self, projection: Projection) {
        self.change(|news| set(&mut news.projection, projection));
    }

    fn waiting(&self, waiting: Option<ExternalWait>) {
        self.change(|news| set(&mut news.waiting, waiting));
    }
}

/// Whether it is another value than before.
fn set<T: PartialEq>(place: &mut T, value: T) -> bool {
    *place != value && {
        *place = value;
        true
    }
}

#[cfg(test)]
mod tests;
