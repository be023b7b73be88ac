//! The inbox of a Job: the people who decide and answer while it runs.

use bloomery_engine::people::{HumanRequest, Statement};
use bloomery_worker::driver::People;
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use tokio::sync::Mutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

/// The statements of people that the Job has not taken.
#[derive(Debug)]
pub(super) struct Inbox(Mutex<UnboundedReceiver<Statement>>);

impl Inbox {
    /// Creates an inbox, and the sender for it. While the sender exists, the Job waits for people and does not park.
    pub(super) fn new() -> (UnboundedSender<Statement>, Self) {
        let (sender, receiver) = unbounded_channel();
        (sender, Self(Mutex::new(receiver)))
    }
}

impl People for Inbox {
    fn can_be_asked(&self) -> bool {
        true
    }

    fn take_statements(&self) -> Vec<Statement> {
        // Only the driver uses the inbox, and it does not ask at the same time.
        let Ok(mut receiver) = self.0.try_lock() else { return Vec::new() };
        std::iter::from_fn(|| receiver.try_recv().ok()).collect()
    }

    fn ask<'a>(&'a self, _: &'a [HumanRequest<'a>]) -> LocalBoxFuture<'a, Option<Statement>> {
        async move { self.0.lock().await.recv().await }.boxed_local()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> Statement {
        Statement::Message { text: text.into(), by: "ada".into(), nth: None }
    }

    #[tokio::test]
    async fn a_job_takes_each_statement_once_and_parks_without_a_sender() {
        let (sender, inbox) = Inbox::new();
        for text in ["one", "two", "three"] {
            sender.send(message(text)).unwrap();
        }
        assert_eq!(inbox.ask(&[]).await, Some(message("one")));
        assert_eq!(inbox.take_statements(), [message("two"), message("three")]);
        assert!(inbox.take_statements().is_empty());
        drop(sender);
        assert_eq!(inbox.ask(&[]).await, None);
    }
}
