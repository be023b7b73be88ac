//! The inbox of a Job: the people who decide and answer while it runs.

use bloomery_engine::people::{HumanRequest, Statement};
use bloomery_worker::driver::People;
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use std::mem;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Mutex as AsyncMutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

/// A statement on its way to a Job. If it is dropped, its sender learns that the Job has not recorded it.
#[derive(Debug)]
pub(super) struct Letter {
    statement: Statement,
    recorded: oneshot::Sender<()>,
}

impl Letter {
    /// Creates a letter, and the receiver of the message that its event is durable.
    pub(super) fn new(statement: Statement) -> (Self, oneshot::Receiver<()>) {
        let (recorded, receiver) = oneshot::channel();
        (Self { statement, recorded }, receiver)
    }
}

/// The letters that the driver has taken, and whose events may not be durable yet. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct TakenLetters(Arc<Mutex<Vec<oneshot::Sender<()>>>>);

impl TakenLetters {
    /// Adds a letter, and returns its statement.
    fn add(&self, Letter { statement, recorded }: Letter) -> Statement {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(recorded);
        statement
    }

    /// Reports to the senders that the events of all letters so far are durable.
    pub(super) fn confirm(&self) {
        for recorded in mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner)) {
            // The sender may have gone.
            let _ = recorded.send(());
        }
    }
}

/// The statements of people that the Job has not taken.
#[derive(Debug)]
pub(super) struct Inbox {
    letters: AsyncMutex<UnboundedReceiver<Letter>>,
    /// The letters that the driver has taken.
    pub(super) taken: TakenLetters,
}

impl Inbox {
    /// Creates an inbox, and the sender for it. While the sender exists, the Job waits for people and does not park.
    pub(super) fn new() -> (UnboundedSender<Letter>, Self) {
        let (sender, receiver) = unbounded_channel();
        (sender, Self { letters: AsyncMutex::new(receiver), taken: TakenLetters::default() })
    }
}

/// The driver makes statements durable before it calls a method again. It discards a statement that changes nothing any more, such as a
/// second decision about a call. So a confirmation says that the log has decided about the statement, and not that it is recorded.
impl People for Inbox {
    fn can_be_asked(&self) -> bool {
        true
    }

    fn take_statements(&self) -> Vec<Statement> {
        self.taken.confirm();
        // Only the driver uses the inbox, and it does not ask at the same time.
        let Ok(mut letters) = self.letters.try_lock() else { return Vec::new() };
        std::iter::from_fn(|| letters.try_recv().ok()).map(|letter| self.taken.add(letter)).collect()
    }

    fn ask<'a>(&'a self, _: &'a [HumanRequest<'a>]) -> LocalBoxFuture<'a, Option<Statement>> {
        async move {
            self.taken.confirm();
            let letter = self.letters.lock().await.recv().await?;
            Some(self.taken.add(letter))
        }
        .boxed_local()
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
        let mut receipts = Vec::new();
        for text in ["one", "two", "three"] {
            let (letter, recorded) = Letter::new(message(text));
            sender.send(letter).unwrap();
            receipts.push(recorded);
        }
        assert_eq!(inbox.ask(&[]).await, Some(message("one")));
        assert!(receipts[0].try_recv().is_err(), "the driver has not recorded it yet");
        assert_eq!(inbox.take_statements(), [message("two"), message("three")]);
        assert_eq!(receipts.remove(0).await, Ok(()));
        assert!(receipts[0].try_recv().is_err());
        assert!(inbox.take_statements().is_empty());
        for recorded in receipts {
            assert_eq!(recorded.await, Ok(()));
        }
        drop(sender);
        assert_eq!(inbox.ask(&[]).await, None);
    }

    #[tokio::test]
    async fn a_job_that_ends_records_no_further_statement() {
        let (sender, inbox) = Inbox::new();
        let ((taken, recorded), (waiting, unread)) = (Letter::new(message("one")), Letter::new(message("two")));
        sender.send(taken).unwrap();
        assert_eq!(inbox.take_statements(), [message("one")]);
        sender.send(waiting).unwrap();
        drop(inbox);
        assert!(recorded.await.is_err() && unread.await.is_err());
    }
}
