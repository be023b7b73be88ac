//! The inbox of a Job: the people who decide and answer while it runs.

use bloomery_engine::Event;
use bloomery_engine::people::{HumanRequest, Statement};
use bloomery_redact::Redactor;
use bloomery_worker::driver::People;
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::Mutex as AsyncMutex;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::oneshot;

/// A statement on its way to a Job. If it is dropped, its sender learns that the Job has not recorded it.
#[derive(Debug)]
pub(super) struct Letter {
    statement: Statement,
    recorded: oneshot::Sender<Event>,
}

impl Letter {
    /// Creates a letter, and the receiver of its event as the log has it. It arrives once the event is durable.
    pub(super) fn new(statement: Statement) -> (Self, oneshot::Receiver<Event>) {
        let (recorded, receiver) = oneshot::channel();
        (Self { statement, recorded }, receiver)
    }
}

/// The letters that the driver has taken, and whose events may not be durable yet. Clones share them.
#[derive(Debug, Clone)]
pub(super) struct TakenLetters {
    letters: Arc<Mutex<Vec<TakenLetter>>>,
    /// The redactor of the driver. Only the process of the Job knows all its secrets: those of its environment are not stored.
    redactor: Redactor,
}

/// A letter that the driver has taken, with its event as the log has it.
#[derive(Debug)]
struct TakenLetter {
    recorded: oneshot::Sender<Event>,
    event: Event,
}

impl TakenLetters {
    /// Adds a letter, and returns its statement.
    fn add(&self, Letter { statement, recorded }: Letter) -> Statement {
        // If the event cannot be redacted, the driver does not record it either, and the letter is dropped.
        if let Ok(event) = self.redactor.redact_event(Event::from(statement.clone())) {
            self.letters().push(TakenLetter { recorded, event });
        }
        statement
    }

    /// Reports to the senders that the events of all letters so far are durable.
    pub(super) fn confirm(&self) {
        for TakenLetter { recorded, event } in mem::take(&mut *self.letters()) {
            // The sender may have gone.
            let _ = recorded.send(event);
        }
    }

    fn letters(&self) -> MutexGuard<'_, Vec<TakenLetter>> {
        self.letters.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// Creates an inbox, and the sender for it. While the sender exists, the Job waits for people and does not park. `redactor` is that of
    /// the driver.
    pub(super) fn new(redactor: Redactor) -> (UnboundedSender<Letter>, Self) {
        let (sender, receiver) = unbounded_channel();
        (sender, Self { letters: AsyncMutex::new(receiver), taken: TakenLetters { letters: Arc::default(), redactor } })
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
        let (sender, inbox) = Inbox::new(Redactor::default());
        let mut receipts = Vec::new();
        for text in ["one", "two", "three"] {
            let (letter, recorded) = Letter::new(message(text));
            sender.send(letter).unwrap();
            receipts.push(recorded);
        }
        assert_eq!(inbox.ask(&[]).await, Some(message("one")));
        assert!(receipts[0].try_recv().is_err(), "the driver has not recorded it yet");
        assert_eq!(inbox.take_statements(), [message("two"), message("three")]);
        assert_eq!(receipts.remove(0).await, Ok(Event::from(message("one"))));
        assert!(receipts[0].try_recv().is_err());
        assert!(inbox.take_statements().is_empty());
        for recorded in receipts {
            assert!(recorded.await.is_ok());
        }
        drop(sender);
        assert_eq!(inbox.ask(&[]).await, None);
    }

    #[tokio::test]
    async fn the_receipt_of_a_statement_is_its_event_without_the_secrets_of_the_process() {
        let redactor = Redactor::default();
        redactor.learn("token", b"hunter22-hunter22");
        let (sender, inbox) = Inbox::new(redactor);
        let (letter, recorded) = Letter::new(message("it is hunter22-hunter22"));
        sender.send(letter).unwrap();
        assert_eq!(inbox.take_statements(), [message("it is hunter22-hunter22")]);
        inbox.taken.confirm();
        assert_eq!(recorded.await, Ok(Event::from(message("it is [redacted: token]"))));
    }

    #[tokio::test]
    async fn a_job_that_ends_records_no_further_statement() {
        let (sender, inbox) = Inbox::new(Redactor::default());
        let ((taken, recorded), (waiting, unread)) = (Letter::new(message("one")), Letter::new(message("two")));
        sender.send(taken).unwrap();
        assert_eq!(inbox.take_statements(), [message("one")]);
        sender.send(waiting).unwrap();
        drop(inbox);
        assert!(recorded.await.is_err() && unread.await.is_err());
    }
}
