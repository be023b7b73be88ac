//! The loop: asks the engine for one step, does it, records what came of it.
//!
//! The engine decides; this performs. What must be durable before an act is made so here, and nowhere else.

mod act;
mod called;
mod chores;
mod clients;
mod decided;
mod heard;
mod journal;
mod people;
mod resources;
mod results;
mod selection;
mod wait;

pub use called::Called;
pub use decided::Decided;
pub use journal::Journal;
pub use people::{Nobody, People};

use crate::recent::Recent;
use crate::stop::{Stop, Why};
use crate::tools::CoreTools;
use crate::waits::Waits;
use bloomery_crds::report::{ExternalWait, HeldCallDetails, ParkReason, Projection};
use bloomery_engine::event::{Directive, ToolProgress};
use bloomery_engine::line::Entry;
use bloomery_engine::projection::{first_hold, project};
use bloomery_engine::step::{ModelRequest, Step, ToolCall};
use bloomery_engine::tool::ListedTool;
use bloomery_engine::{Conversation, Event};
use bloomery_journal::files::Files;
use people::Answered;
use std::time::Duration;
use tokio::time::Instant;

/// The models of a Job, as the driver needs them. `model::Clients` is the real one.
pub trait Model {
    /// Says what is missing before the Model of this name can be asked at all: a key that is not in its Secret yet.
    /// Looked up anew each time, so that it heals without a restart.
    fn missing(&self, model: &str) -> Option<ExternalWait>;

    /// Asks the Model that the request names until there is an answer, the client's patience is over, or `within` was
    /// spent in requests; gives [`Event::ModelAnswered`] or [`Event::ModelFailed`]. Pauses between tries are made
    /// through `waits`, and are no work. Dropping the future drops the request.
    fn complete(&self, request: &ModelRequest<'_>, within: Duration, waits: &Waits<'_>) -> impl Future<Output = Event>;
}

/// Why the tools could not be listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unlisted {
    /// A sentence for people.
    pub message: String,
    /// Nothing is to be expected of another try.
    pub is_final: bool,
}

/// The Skill's tools, as the driver needs them. `Option<mcp::Client>` is the real one.
pub trait Tools {
    /// Lists the tools once; none where the Skill has no server.
    fn list(&self, within: Duration) -> impl Future<Output = Result<Vec<ListedTool>, Unlisted>>;

    /// Lists the tools once, from the server itself: whether they are as they were fixed.
    fn list_anew(&self, within: Duration) -> impl Future<Output = Result<Vec<ListedTool>, Unlisted>> {
        self.list(within)
    }

    /// Sends a call once; its outcome is [`Event::ToolCompleted`], [`Event::ToolFailed`] where the server answered so or
    /// no byte left us, and [`Event::ToolIndeterminate`] otherwise. A tool that is not what it was is not called. What its
    /// server tells of the call while it is under way, `listener` hears at once.
    fn call(
        &self,
        call: &ToolCall<'_>,
        within: Duration,
        listener: &dyn Fn(ToolProgress),
    ) -> impl Future<Output = Called>;
}

/// Who is told how a run goes, beside its log: the operator by a [`crate::report::Reporter`], or a person at a terminal.
pub trait Audience: std::fmt::Debug + Sync {
    /// Hears how the conversation stands; every event in it is durable.
    fn tell(&self, projection: Projection);

    /// Hears what the run waits for, or that it waits no longer.
    fn waiting(&self, waiting: Option<ExternalWait>);
}

/// How long a look at the tools may take where an attempt goes on.
const LOOK: Duration = Duration::from_secs(10);

/// How long the driver waits for what.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// For an MCP server that does not answer, or a key that is not there.
    pub outside: Duration,
    /// For one answer of an MCP server, whatever the Skill says of the tool.
    pub tool: Duration,
    /// For a call with effect that is under way when the pod is asked to end.
    pub grace: Duration,
    /// The same, when the Job is cancelled or its Skill deleted: a person waits for that.
    pub cancel_grace: Duration,
}

impl Patience {
    /// Waits so long for what a person can mend.
    pub fn of(outside: Duration) -> Self {
        Self {
            outside,
            tool: crate::mcp::MAX_CALL_TIMEOUT,
            // The pod has 60 s: the rest is for the log and the report.
            grace: Duration::from_secs(50),
            cancel_grace: Duration::from_secs(5),
        }
    }

    /// How long a call with effect may go on once the run is to stop.
    fn grace_of(&self, why: Why) -> Duration {
        match why {
            Why::Drain | Why::Suspended | Why::Superseded => self.grace,
            Why::Cancelled | Why::SkillDeleted => self.cancel_grace,
        }
    }
}

/// Everything outside that the driver deals with.
#[derive(Debug)]
pub struct World<'a, M, T> {
    /// The model.
    pub model: &'a M,
    /// The tools.
    pub tools: &'a T,
    /// Who decides and answers.
    pub people: &'a dyn People,
    /// Who is told how it goes.
    pub audience: &'a dyn Audience,
    /// The request to stop.
    pub stop: &'a Stop,
    /// The worker's own tools, and where large results are kept.
    pub core: &'a CoreTools,
    /// What the Skill's Jobs have lately found out.
    pub recent: &'a Recent,
    /// How long to wait.
    pub patience: Patience,
}

/// How a run ended; its log is durable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// With an outcome.
    Finished,
    /// With the conversation to be continued in another pod.
    Parked(ParkReason),
    /// Another attempt has taken over.
    Superseded,
}

/// A conversation and its log, driven step by step.
#[derive(Debug)]
pub struct Driver<'a, M, T, F> {
    conversation: Conversation,
    journal: Journal<F>,
    world: World<'a, M, T>,
}

impl<'a, M: Model, T: Tools, F: Files> Driver<'a, M, T, F> {
    /// Takes over a conversation whose epoch has begun.
    pub fn new(conversation: Conversation, journal: Journal<F>, world: World<'a, M, T>) -> Self {
        Self { conversation, journal, world }
    }

    /// Drives the conversation to its end, or until it has to stop.
    ///
    /// # Errors
    /// If the log cannot be written. The epoch is over then: what was not durable has not happened.
    pub async fn run(&mut self) -> Result<Exit, bloomery_journal::Error> {
        let done = self.drive().await;
        // Whatever went wrong, what is durable is told.
        self.journal.close();
        match done {
            Err(superseded @ bloomery_journal::Error::Superseded { .. }) => {
                tracing::warn!("{superseded}");
                Ok(Exit::Superseded)
            }
            other => other,
        }
    }

    /// The conversation as it stands.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// What others see of it; every event in it is durable once the run has ended.
    pub fn projection(&self) -> Projection {
        project(&self.conversation, self.journal.position())
    }

    /// What people need to know of the call that waits for them.
    pub fn hold(&self) -> Option<HeldCallDetails> {
        first_hold(&self.conversation, self.journal.lately())
    }

    /// The file layer below the log, for what is kept beside it.
    pub fn files(&self) -> &F {
        self.journal.files()
    }

    async fn drive(&mut self) -> Result<Exit, bloomery_journal::Error> {
        self.await_resources().await?;
        self.look_at_tools().await?;
        let mut is_deciding = false;
        loop {
            // What the engine decides takes no time in which anything could happen.
            if !std::mem::take(&mut is_deciding) {
                // A signal that came while the log was written is heard before anything is begun.
                tokio::task::yield_now().await;
                self.obey()?;
                self.hear()?;
            }
            let Self { conversation, journal, world } = self;
            let done = match bloomery_engine::next(conversation) {
                Step::Record(events) => {
                    is_deciding = true;
                    selection::remember(&events, conversation, world.recent, journal.files());
                    Ok(journal.append_all(events)?)
                }
                Step::Done(_) => {
                    journal.sync()?;
                    return Ok(Exit::Finished);
                }
                Step::AskPeople(asks) => match people::ask(&asks, conversation, journal, world).await? {
                    Answered::Said(entries) => Ok(entries),
                    Answered::Nobody(reason) => return self.park(reason),
                    Answered::Stopped(why) => Err(why),
                },
                begun => match world.stop.asked() {
                    Some(asked) => Err(asked.why),
                    None => Ok(act::perform(begun, conversation, journal, world).await?),
                },
            };
            match done {
                Ok(entries) => self.apply(&entries),
                Err(why) => {
                    if let Some(exit) = self.leave(why)? {
                        return Ok(exit);
                    }
                }
            }
        }
    }

    /// Takes what people have said by themselves, until it is over.
    fn hear(&mut self) -> Result<(), bloomery_journal::Error> {
        let mut said = self.world.people.heard();
        // An attempt before this one may have heard it.
        said.retain(|said| self.conversation.is_relevant(said));
        if said.is_empty() || self.conversation.outcome().is_some() {
            return Ok(());
        }
        let entries = people::record(said, &mut self.journal)?;
        self.apply(&entries);
        Ok(())
    }

    /// Writes down that the Job is to end, where it is: from then on the engine only ends it.
    fn obey(&mut self) -> Result<(), bloomery_journal::Error> {
        let said = self.world.stop.asked().and_then(|asked| asked.why.ends());
        if let Some(directive) = said.filter(|_| !self.is_over()) {
            let entries = self.journal.append_all(vec![Event::DirectiveReceived { directive }])?;
            self.journal.sync()?;
            self.apply(&entries);
        }
        Ok(())
    }

    /// Leaves the conversation to another attempt. None where there is to be no other: it is ended here.
    fn leave(&mut self, why: Why) -> Result<Option<Exit>, bloomery_journal::Error> {
        match why {
            // What is not durable yet belongs to nobody: the log is another's.
            Why::Superseded => Ok(Some(Exit::Superseded)),
            Why::Drain => self.park(ParkReason::Drain).map(Some),
            Why::Suspended => {
                let told = self.journal.append_all(vec![Event::DirectiveReceived { directive: Directive::Park }])?;
                self.apply(&told);
                self.park(ParkReason::Suspension).map(Some)
            }
            Why::Cancelled | Why::SkillDeleted => Ok(None),
        }
    }

    /// Whether nothing more is to be done but to tell the end.
    fn is_over(&self) -> bool {
        self.conversation.outcome().is_some() || self.conversation.demanded_end().is_some()
    }

    /// Ends the pod with its log written.
    fn park(&mut self, reason: ParkReason) -> Result<Exit, bloomery_journal::Error> {
        let entries = self.journal.append_all(vec![Event::Parked { reason }])?;
        self.journal.sync()?;
        self.apply(&entries);
        Ok(Exit::Parked(reason))
    }

    /// Waits until what the Job binds is there. Not where it is over, which needs nothing any more.
    async fn await_resources(&mut self) -> Result<(), bloomery_journal::Error> {
        if self.is_over() {
            return Ok(());
        }
        let (event, time) = resources::there(&self.conversation.run().resources, &self.world).await;
        self.journal.waited(time);
        if let Some(event) = event {
            let entries = self.journal.append_all(vec![event])?;
            self.apply(&entries);
        }
        Ok(())
    }

    /// Looks whether the tools that an earlier attempt has fixed are still what they were. Whoever does not answer now is
    /// looked at again before the first call.
    async fn look_at_tools(&mut self) -> Result<(), bloomery_journal::Error> {
        if self.is_over() || !self.conversation.has_catalogue() {
            return Ok(());
        }
        let began = Instant::now();
        let listed = tokio::select! {
            _ = self.world.stop.wait() => return Ok(()),
            listed = self.world.tools.list_anew(LOOK.min(self.world.patience.tool)) => listed,
        };
        self.journal.waited(began.elapsed());
        if let Some(event) = listed.ok().and_then(|listed| self.conversation.compare_tools(&listed)) {
            let entry = self.journal.append(event)?;
            self.apply(&[entry]);
        }
        Ok(())
    }

    fn apply(&mut self, entries: &[Entry]) {
        let strays = self.conversation.questions().strays();
        for entry in entries {
            self.conversation.apply(entry);
        }
        let questions = self.conversation.questions();
        if questions.strays() > strays
            && let Some(reply) = questions.stray().last()
        {
            tracing::warn!("{} answers {}, which is no open question: it changes nothing", reply.by, reply.question);
        }
    }
}

#[cfg(test)]
mod tests;
