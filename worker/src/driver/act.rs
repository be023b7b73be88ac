//! The acts: what is durable before each, and what is recorded after it.
//!
//! The entries that an act gives are in the log and not applied yet: a step borrows from the conversation as
//! long as it is performed.

use super::called::{self, Called};
use super::chores::beside;
use super::heard::Heard;
use super::wait::{self, Waited};
use super::{Journal, Model, Tools, Unlisted, World};
use super::{results, selection};
use crate::mcp::CALL_TIMEOUT;
use crate::stop::Why;
use crate::waits::Waits;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::report::ExternalWait;
use bloomery_crds::v1alpha1::{LogPosition, Stage};
use bloomery_engine::catalogue::fix_catalogue;
use bloomery_engine::line::Entry;
use bloomery_engine::offload::Offload;
use bloomery_engine::projection::project;
use bloomery_engine::step::{ModelRequest, Step, ToolCall};
use bloomery_engine::tool::ToolSource;
use bloomery_engine::{Conversation, Event};
use bloomery_journal::{Error, files::Files};
use futures::StreamExt;
use std::pin::pin;
use std::time::Duration;
use tokio::time::Instant;

/// How many reads run at once.
const READS_AT_ONCE: usize = 8;

/// Performs a step that needs the world; gives what was recorded of it. Nothing, where the run is to stop first.
pub(super) async fn perform<M: Model, T: Tools, F: Files>(
    step: Step<'_>,
    conversation: &Conversation,
    journal: &mut Journal<F>,
    world: &World<'_, M, T>,
) -> Result<Vec<Entry>, Error> {
    let act = Act { conversation, journal, world };
    match step {
        // The loop has done these.
        Step::Record(_) | Step::AskPeople(_) | Step::Done(_) => Ok(Vec::new()),
        Step::Offload(results) => act.offload(&results),
        Step::ListTools => act.list_tools().await,
        Step::GatherContext => act.gather_context().await,
        Step::CallModel(request) => act.call_model(request).await,
        Step::RunReads(calls) => act.run_reads(&calls).await,
        Step::RunEffect(call) => act.run_effect(&call).await,
    }
}

/// Makes a call, and gives what came of it: by the server whose tool it is, or by the worker itself.
async fn outcome<M, T: Tools>(
    call: &ToolCall<'_>,
    within: Duration,
    world: &World<'_, M, T>,
    (files, heard): (&impl Files, &Heard),
) -> Called {
    match call.source {
        ToolSource::Server => world.tools.call(call, within, &|told| heard.hear(call.id, told)).await,
        ToolSource::Core => world.core.call(call, within.min(CALL_TIMEOUT), files).await.into(),
    }
}

/// Makes everything durable, and tells it.
pub(super) fn durable<M, T, F: Files>(
    conversation: &Conversation,
    journal: &mut Journal<F>,
    world: &World<'_, M, T>,
) -> Result<(), Error> {
    journal.sync()?;
    world.audience.tell(project(conversation, journal.position()));
    Ok(())
}

/// What is known of a call that was given up because the run is to stop.
fn given_up(why: Why, grace: Duration) -> String {
    let asked = match why {
        Why::Drain | Why::Suspended | Why::Superseded => "the worker was asked to end",
        Why::Cancelled => "the Job was cancelled",
        Why::SkillDeleted => "the Skill was deleted",
    };
    format!("{asked}, and no answer came within {} s", grace.as_secs())
}

struct Act<'a, M, T, F> {
    conversation: &'a Conversation,
    journal: &'a mut Journal<F>,
    world: &'a World<'a, M, T>,
}

impl<M: Model, T: Tools, F: Files> Act<'_, M, T, F> {
    async fn list_tools(self) -> Result<Vec<Entry>, Error> {
        let tools = self.world.tools;
        let within = self.world.patience.tool;
        let list = || async move {
            match tools.list(within).await {
                Ok(listed) => Ok(Ok(listed)),
                Err(Unlisted { message, is_final: true }) => Ok(Err(message)),
                Err(Unlisted { message, is_final: false }) => Err(ExternalWait::McpUnavailable { message }),
            }
        };
        let (waited, time) = wait::until(list, self.world).await;
        self.journal.waited(time);
        let event = match waited {
            Waited::Stopped => return Ok(Vec::new()),
            Waited::Over(Ok(listed)) => fix_catalogue(self.conversation.run(), listed),
            Waited::Over(Err(message)) => wait::dead(&message),
            Waited::GivenUp(event) => event,
        };
        self.journal.append(event).map(|entry| vec![entry])
    }

    async fn gather_context(self) -> Result<Vec<Entry>, Error> {
        let wanted = self.conversation.run().skill.context.clone().unwrap_or_default();
        let gathered = self.world.core.gather(&wanted, self.world.patience.tool);
        let event = tokio::select! {
            // Another attempt gathers anew.
            _ = self.world.stop.wait() => return Ok(Vec::new()),
            parts = gathered => Event::ContextGathered { parts },
        };
        self.journal.append(event).map(|entry| vec![entry])
    }

    async fn call_model(mut self, request: ModelRequest<'_>) -> Result<Vec<Entry>, Error> {
        let World { model, audience, stop, recent, .. } = self.world;
        if request.stage == Stage::Selection
            && let Some(selected) = selection::recalled(self.conversation, recent, self.journal.files())
        {
            return self.journal.append(selected).map(|entry| vec![entry]);
        }
        // Before the reserve is spent: without a key nothing is asked.
        let name = request.model;
        let ready = || async move { model.missing(name).map_or(Ok(()), Err) };
        let (waited, time) = wait::until(ready, self.world).await;
        self.journal.waited(time);
        match waited {
            Waited::Stopped => return Ok(Vec::new()),
            Waited::GivenUp(event) => return self.journal.append(event).map(|entry| vec![entry]),
            Waited::Over(()) => {}
        }
        let reserve = request.reserve;
        let (requested, before) = self.durably_begin(Event::ModelRequested { reserve, stage: request.stage })?;
        let (asked, remaining) = (Instant::now(), self.remaining());
        let tell = |what| audience.waiting(Some(what));
        let waits = Waits::new(&tell);
        let answer = async {
            tokio::select! {
                // Its reserve counts as spent, and another attempt asks again.
                _ = stop.wait() => None,
                event = model.complete(&request, remaining, &waits) => Some(event),
            }
        };
        let event = beside(answer, || self.told(before)).await;
        audience.waiting(None);
        let worked = asked.elapsed().saturating_sub(waits.idle());
        self.journal.waited(waits.idle());
        let event = match event {
            Some(Event::ModelFailed { .. }) if worked >= remaining => Some(self.out_of_time()),
            other => other,
        };
        let mut entries = vec![requested];
        if let Some(event) = event {
            entries.push(self.journal.append(event)?);
        }
        Ok(entries)
    }

    async fn run_reads(self, calls: &[ToolCall<'_>]) -> Result<Vec<Entry>, Error> {
        let before = self.journal.position();
        self.journal.commit()?;
        let heard = Heard::new();
        let read = self.recording(&heard, self.read(calls, &heard));
        let (outcomes, mut entries) = beside(read, || self.told(before)).await?;
        entries.extend(self.record(outcomes, &heard)?);
        Ok(entries)
    }

    /// Performs calls, and records what is told of them meanwhile.
    async fn recording<R>(&self, heard: &Heard, calls: impl Future<Output = R>) -> Result<(R, Vec<Entry>), Error> {
        let mut calls = pin!(calls);
        let mut entries = Vec::new();
        loop {
            let told = tokio::select! {
                biased;
                done = &mut calls => return Ok((done, entries)),
                told = heard.due() => told,
            };
            for (call, told) in told {
                entries.push(self.journal.append(Event::ToolProgressed { call, progress: told })?);
            }
            self.journal.commit()?;
            self.journal.tidy();
        }
    }

    /// Records what came of calls.
    fn record(&self, calls: Vec<Called>, heard: &Heard) -> Result<Vec<Entry>, Error> {
        let (focus, files) = (self.world.core.focus(), self.journal.files());
        let calls = calls.into_iter().map(|called| self.redacted(called.with_rest(heard)));
        let calls = calls.collect::<Result<_, _>>()?;
        self.journal.append_all(called::recorded(calls, self.conversation, focus, files))
    }

    /// Makes calls that only read, and gives what came of those that were answered before the run is to stop: the others
    /// are made again by another attempt.
    async fn read(&self, calls: &[ToolCall<'_>], heard: &Heard) -> Vec<Called> {
        let World { stop, patience, .. } = *self.world;
        let within = patience.tool.min(self.remaining());
        let (world, files) = (self.world, self.journal.files());
        let mut running = futures::stream::iter(calls.iter().enumerate())
            .map(|(at, call)| async move { (at, outcome(call, within, world, (files, heard)).await) })
            .buffer_unordered(READS_AT_ONCE);
        let mut outcomes = Vec::with_capacity(calls.len());
        loop {
            tokio::select! {
                _ = stop.wait() => break,
                outcome = running.next() => match outcome {
                    Some(outcome) => outcomes.push(outcome),
                    None => break,
                },
            }
        }
        outcomes.sort_by_key(|(at, _)| *at);
        outcomes.into_iter().map(|(_, called)| called).collect()
    }

    async fn run_effect(mut self, call: &ToolCall<'_>) -> Result<Vec<Entry>, Error> {
        let (started, before) = self.durably_begin(Event::ToolStarted { call: call.id.clone() })?;
        let World { stop, patience, .. } = self.world;
        let heard = Heard::new();
        let called = async {
            // It has its whole time, whatever is left of the budget: one that is cut short is a question to a person.
            tokio::select! {
                outcome = outcome(call, patience.tool, self.world, (self.journal.files(), &heard)) => outcome,
                why = stop.grace_over(|why| patience.grace_of(why)) => Called::from(Event::ToolIndeterminate {
                    call: call.id.clone(),
                    text: given_up(why, patience.grace_of(why)),
                }),
            }
        };
        let (outcome, told) = beside(self.recording(&heard, called), || self.told(before)).await?;
        let mut entries = vec![started];
        entries.extend(told);
        // Why it was given up comes before that it was.
        if let Some(directive) = stop.asked().and_then(|asked| asked.why.ends()) {
            entries.push(self.journal.append(Event::DirectiveReceived { directive })?);
        }
        entries.extend(self.record(vec![outcome], &heard)?);
        self.journal.commit()?;
        Ok(entries)
    }

    /// What came of a call, without secrets: before any of it is kept.
    fn redacted(&self, called: Called) -> Result<Called, Error> {
        let outcome = self.journal.redacted(called.outcome)?;
        Ok(Called { outcome, ..called })
    }

    /// Puts results aside: each is kept whole before anything says so.
    fn offload(self, results: &[Offload<'_>]) -> Result<Vec<Entry>, Error> {
        let offloaded = results::offloaded(results, self.world.core.focus(), self.journal.files())?;
        self.journal.append_all(offloaded)
    }

    /// Makes everything durable, the beginning of an act as its last; gives that, and where the log stood before it.
    fn durably_begin(&mut self, beginning: Event) -> Result<(Entry, LogPosition), Error> {
        let before = self.journal.position();
        let entry = self.journal.append(beginning)?;
        self.journal.commit()?;
        Ok((entry, before))
    }

    /// Tells what is durable. Of an act that is under way it is what was `before`, because the conversation does not know
    /// of its beginning yet.
    fn told(&self, before: LogPosition) {
        self.journal.tidy();
        self.world.audience.tell(project(self.conversation, before));
    }

    /// What is left of the Job's duration.
    fn remaining(&self) -> Duration {
        let limit = Duration::from_secs(self.conversation.run().limits.duration_seconds);
        limit.saturating_sub(Duration::from_millis(self.conversation.budget().worked_ms()))
    }

    fn out_of_time(&self) -> Event {
        let seconds = self.conversation.run().limits.duration_seconds;
        let message = format!(
            "the model had not answered when {seconds} s of work were over, which is all that limits.duration allows"
        );
        Event::LimitHit { code: OutcomeCode::DurationLimit, message }
    }
}
