//! Asks the engine for the next step, performs it, and records the result. The driver makes events durable before each act that
//! needs them.

mod act;
mod child_desk;
mod children;
mod clients;
mod decision_inbox;
mod environment;
mod finished_call;
mod limits;
mod people;
mod progress_buffer;
mod recorder;
mod resources;
mod results;
mod selection;
mod skill_tools;
mod wait;

pub use child_desk::ChildDesk;
pub use decision_inbox::DecisionInbox;
pub use environment::{Children, Environment, ListError, Model, NoChildren, Nobody, Observer, Patience, People, Tools};
pub use finished_call::FinishedCall;
pub use recorder::Recorder;
pub use skill_tools::SkillTools;
pub use wait::REPAIR_SERVER;

use crate::stop::StopReason;
use bloomery_crds::report::{HeldCallDetails, ParkReason, Projection};
use bloomery_engine::event::Directive;
use bloomery_engine::line::Entry;
use bloomery_engine::projection::{first_hold, project};
use bloomery_engine::step::Step;
use bloomery_engine::{Conversation, Event};
use bloomery_journal::files::Files;
use std::time::Duration;
use tokio::time::Instant;
use wait::Awaited;

/// The time limit for listing the tools when an attempt continues a conversation.
const TOOL_CHECK_TIMEOUT: Duration = Duration::from_secs(10);

/// The end of a run. Its log is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The conversation has an outcome.
    Finished,
    /// Another pod continues the conversation later.
    Parked(ParkReason),
    /// Another attempt has taken over.
    Superseded,
}

/// Drives one conversation, step by step, and keeps its log.
#[derive(Debug)]
pub struct Driver<'a, M, T, F> {
    conversation: Conversation,
    recorder: Recorder<F>,
    environment: &'a Environment<'a, M, T>,
    observer: &'a dyn Observer,
}

/// Closes the log after a run. Returns how the run ended: that another attempt has taken over the log is no error.
pub(crate) fn close<F: Files>(
    recorder: &mut Recorder<F>,
    done: Result<Exit, bloomery_journal::Error>,
) -> Result<Exit, bloomery_journal::Error> {
    // Closing prints the durable events, so it is needed after an error too.
    recorder.close();
    match done {
        Err(superseded @ bloomery_journal::Error::Superseded { .. }) => {
            tracing::warn!("{superseded}");
            Ok(Exit::Superseded)
        }
        other => other,
    }
}

impl<'a, M: Model, T: Tools, F: Files> Driver<'a, M, T, F> {
    /// Creates the driver of a conversation whose epoch has begun.
    pub fn new(
        conversation: Conversation,
        recorder: Recorder<F>,
        environment: &'a Environment<'a, M, T>,
        observer: &'a dyn Observer,
    ) -> Self {
        Self { conversation, recorder, environment, observer }
    }

    /// Drives the conversation until it ends or has to stop.
    ///
    /// # Errors
    /// If the log cannot be written. Then the epoch is over, and the next one continues from the last durable event.
    pub async fn run(&mut self) -> Result<Exit, bloomery_journal::Error> {
        let done = self.drive().await;
        close(&mut self.recorder, done)
    }

    /// Returns the conversation in its current state.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Returns the public state of the conversation. Once the run has ended, every event in it is durable.
    pub fn projection(&self) -> Projection {
        project(&self.conversation, self.recorder.position())
    }

    /// Returns the details of the call that waits for approval, for the people who decide.
    pub fn hold(&self) -> Option<HeldCallDetails> {
        first_hold(&self.conversation, self.recorder.last_events())
    }

    /// Returns the file operations that the log uses, for other files in the memory.
    pub fn files(&self) -> &F {
        self.recorder.files()
    }

    async fn drive(&mut self) -> Result<Exit, bloomery_journal::Error> {
        self.await_resources().await?;
        self.check_tools().await?;
        let mut is_deciding = false;
        loop {
            // The engine decides without waiting, so no request to stop and no statement can arrive between two decisions.
            if !std::mem::take(&mut is_deciding) {
                // Lets the runtime deliver a signal that came while the log was written.
                tokio::task::yield_now().await;
                self.record_directive()?;
                self.record_statements()?;
            }
            let Self { conversation, recorder, environment, observer } = self;
            let done = match bloomery_engine::next(conversation) {
                Step::Record(events) => {
                    is_deciding = true;
                    selection::store(&events, conversation, environment.cache, recorder.files());
                    Awaited::Recorded(recorder.append_all(events)?)
                }
                Step::Done(_) => {
                    recorder.make_durable()?;
                    return Ok(Exit::Finished);
                }
                Step::AskPeople(requests) => {
                    people::ask(&requests, conversation, recorder, environment, *observer).await?
                }
                Step::AwaitChild(request) => {
                    children::await_end(&request, conversation, recorder, environment, *observer).await?
                }
                step => match environment.stop.requested() {
                    Some(request) => Awaited::Stopped(request.reason),
                    None => {
                        Awaited::Recorded(act::perform(step, conversation, recorder, environment, *observer).await?)
                    }
                },
            };
            match done {
                Awaited::Recorded(entries) => self.apply(&entries),
                Awaited::Unavailable(reason) => return self.park(reason),
                Awaited::Stopped(reason) => {
                    if let Some(exit) = self.stop(reason)? {
                        return Ok(exit);
                    }
                }
            }
        }
    }

    /// Records the statements that people made without being asked by this worker. Does nothing once the conversation has an outcome, and
    /// before the Job is attached to its log: the statements are those of this Job.
    fn record_statements(&mut self) -> Result<(), bloomery_journal::Error> {
        // The driver does not take a statement that it cannot record, so that its sender can learn this.
        if !self.conversation.is_attached() || self.conversation.outcome().is_some() {
            return Ok(());
        }
        let mut statements = self.environment.people.take_statements();
        // An earlier attempt may have recorded some of them.
        statements.retain(|statement| self.conversation.is_relevant(statement));
        if statements.is_empty() {
            return Ok(());
        }
        let entries = people::record(statements, &mut self.recorder)?;
        self.apply(&entries);
        Ok(())
    }

    /// Records the request to end the Job, if there is one. After this event, the engine only ends the conversation.
    fn record_directive(&mut self) -> Result<(), bloomery_journal::Error> {
        let directive = self.environment.stop.requested().and_then(|request| request.reason.directive());
        if let Some(directive) = directive.filter(|_| !self.is_ending()) {
            let entries = self.recorder.append_all(vec![Event::DirectiveReceived { directive }])?;
            self.recorder.make_durable()?;
            self.apply(&entries);
        }
        Ok(())
    }

    /// Stops for a reason. Returns `None` if the Job is cancelled or its Skill is deleted: then the loop continues, so that the engine
    /// ends the conversation.
    fn stop(&mut self, reason: StopReason) -> Result<Option<Exit>, bloomery_journal::Error> {
        match reason {
            // The log belongs to another attempt, so nothing more is written.
            StopReason::Superseded => Ok(Some(Exit::Superseded)),
            StopReason::Drain => self.park(ParkReason::Drain).map(Some),
            StopReason::Suspended => {
                let entries =
                    self.recorder.append_all(vec![Event::DirectiveReceived { directive: Directive::Park }])?;
                self.apply(&entries);
                self.park(ParkReason::Suspension).map(Some)
            }
            StopReason::Cancelled | StopReason::SkillDeleted => Ok(None),
        }
    }

    /// Returns whether the conversation has an outcome, or a request to end it is recorded.
    fn is_ending(&self) -> bool {
        self.conversation.outcome().is_some() || self.conversation.demanded_end().is_some()
    }

    /// Parks the conversation: this pod ends, and another one continues later.
    fn park(&mut self, reason: ParkReason) -> Result<Exit, bloomery_journal::Error> {
        let entries = self.recorder.append_all(vec![Event::Parked { reason }])?;
        self.recorder.make_durable()?;
        self.apply(&entries);
        Ok(Exit::Parked(reason))
    }

    /// Waits until the resources that the Job binds are available. Returns at once if the conversation is ending.
    async fn await_resources(&mut self) -> Result<(), bloomery_journal::Error> {
        if self.is_ending() {
            return Ok(());
        }
        let bound = &self.conversation.run().resources;
        let (event, time) = resources::wait_until_available(bound, self.environment, self.observer).await;
        self.recorder.exclude_from_work(time);
        if let Some(event) = event {
            let entries = self.recorder.append_all(vec![event])?;
            self.apply(&entries);
        }
        Ok(())
    }

    /// Compares the server's tools with the catalogue that an earlier attempt has fixed, and records a difference. If the server does
    /// not answer, the comparison is made at the first call instead.
    async fn check_tools(&mut self) -> Result<(), bloomery_journal::Error> {
        if self.is_ending() || !self.conversation.has_catalogue() {
            return Ok(());
        }
        let began = Instant::now();
        let listed = tokio::select! {
            _ = self.environment.stop.wait() => return Ok(()),
            listed = self.environment.tools.list_uncached(TOOL_CHECK_TIMEOUT.min(self.environment.patience.tool)) => listed,
        };
        self.recorder.exclude_from_work(began.elapsed());
        if let Some(event) = listed.ok().and_then(|listed| self.conversation.compare_tools(&listed)) {
            let entry = self.recorder.append(event)?;
            self.apply(&[entry]);
        }
        Ok(())
    }

    fn apply(&mut self, entries: &[Entry]) {
        let stray_replies_before = self.conversation.questions().stray_count();
        for entry in entries {
            self.conversation.apply(entry);
        }
        let questions = self.conversation.questions();
        if questions.stray_count() > stray_replies_before
            && let Some(reply) = questions.stray_replies().last()
        {
            tracing::warn!("the reply of {} is ignored: there is no open question {}", reply.by, reply.question);
        }
    }
}

#[cfg(test)]
mod tests;
