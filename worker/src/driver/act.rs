//! Performs steps: makes all events durable before each act that needs it, performs the act, and records its result.
//!
//! The functions return the entries that they recorded, and the driver applies them to the conversation. The functions cannot do so,
//! because their step borrows from the conversation.

use super::environment::{Environment, ListError, Model, Observer, Tools};
use super::finished_call::{FinishedCall, events_of_calls};
use super::progress_buffer::ProgressBuffer;
use super::recorder::Recorder;
use super::wait::{self, WaitResult};
use super::{children, limits, results, selection};
use crate::stop::StopReason;
use crate::tools;
use bloomery_crds::outcome::OutcomeCode;
use bloomery_crds::report::ExternalWait;
use bloomery_crds::v1alpha1::{LogPosition, SkillSpec, Stage};
use bloomery_engine::catalogue::{fix_catalogue, unpinned_tools};
use bloomery_engine::core_tools::{USE_SKILL, use_skill};
use bloomery_engine::line::Entry;
use bloomery_engine::offload::Offload;
use bloomery_engine::projection::project;
use bloomery_engine::step::{ModelRequest, Step, ToolCall};
use bloomery_engine::tool::ToolSource;
use bloomery_engine::{Conversation, Event};
use bloomery_http::Pauses;
use bloomery_journal::{Error, files::Files};
use bloomery_mcp::CALL_TIMEOUT;
use futures::StreamExt;
use std::pin::pin;
use std::time::Duration;
use tokio::time::{Instant, sleep_until};

/// The maximum number of reads that run concurrently. Each may hold an answer of a server in memory, which takes up to 45 MiB.
const MAX_CONCURRENT_READS: usize = 4;

/// Performs a step that needs something outside of the engine. Returns the recorded entries. There may be none if the run is to stop.
pub(super) async fn perform<M: Model, T: Tools, F: Files>(
    step: Step<'_>,
    conversation: &Conversation,
    recorder: &mut Recorder<F>,
    environment: &Environment<'_, M, T>,
    observer: &dyn Observer,
) -> Result<Vec<Entry>, Error> {
    let act = Act { conversation, recorder, environment, observer };
    match step {
        // The driver's loop handles these.
        Step::Record(_) | Step::AskPeople(_) | Step::AwaitChild(_) | Step::Done(_) => Ok(Vec::new()),
        Step::Offload(results) => act.offload(&results),
        Step::ListTools => act.list_tools().await,
        Step::GatherContext => act.gather_context().await,
        Step::CallModel(request) => act.call_model(request).await,
        Step::Reserve(reservation) => limits::reserve(&reservation, environment, act.recorder),
        Step::GiveBack { call, key } => {
            // The end of the call becomes durable before: the call must never be sent without its amounts.
            act.flush()?;
            limits::give_back(call, &key, environment, act.recorder)
        }
        Step::RunReads(calls) => act.run_reads(&calls).await,
        Step::InvokeSkill(call) => {
            act.flush()?;
            children::start(call, conversation, act.recorder, environment).await
        }
        Step::RunEffect(call) => act.run_effect(&call).await,
    }
}

/// Sends a call to the MCP server, or performs it if it calls a core tool.
async fn send_call<M, T: Tools>(
    call: &ToolCall<'_>,
    within: Duration,
    environment: &Environment<'_, M, T>,
    spec: &SkillSpec,
    (files, progress): (&impl Files, &ProgressBuffer),
) -> FinishedCall {
    match call.source {
        ToolSource::Server => environment.tools.call(call, within, &|report| progress.add(call.id, report)).await,
        ToolSource::Core if call.tool == USE_SKILL => list_skills(call, environment, spec).await,
        ToolSource::Core => environment.core.call(call, within.min(CALL_TIMEOUT), files).await.into(),
    }
}

/// Lists the Skills that the Job may invoke.
async fn list_skills<M, T>(call: &ToolCall<'_>, environment: &Environment<'_, M, T>, spec: &SkillSpec) -> FinishedCall {
    let skills = environment.children.skills().await;
    let answer = skills.and_then(|skills| use_skill::answer(spec, &skills, call.arguments));
    let call = call.id.clone();
    FinishedCall::from(match answer {
        Ok(text) => Event::ToolCompleted { call, text },
        Err(text) => Event::ToolFailed { call, text },
    })
}

/// Returns whether a call reads only inside of the pod. It needs no durable event, because nobody else can notice it.
fn is_read_in_pod(call: &ToolCall<'_>) -> bool {
    call.read_only && call.source == ToolSource::Core && tools::is_local(call.tool)
}

/// Returns the text for a call that was abandoned because the run is to stop.
fn abandoned(reason: StopReason, grace: Duration) -> String {
    let request = match reason {
        StopReason::Drain | StopReason::Suspended | StopReason::Superseded => "the worker was asked to end",
        StopReason::Cancelled => "the Job was cancelled",
        StopReason::SkillDeleted => "the Skill was deleted",
    };
    format!("{request}, and no answer came within {} s", grace.as_secs())
}

/// Everything that performing one step needs.
struct Act<'a, M, T, F> {
    conversation: &'a Conversation,
    recorder: &'a mut Recorder<F>,
    environment: &'a Environment<'a, M, T>,
    observer: &'a dyn Observer,
}

impl<M: Model, T: Tools, F: Files> Act<'_, M, T, F> {
    async fn list_tools(self) -> Result<Vec<Entry>, Error> {
        let tools = self.environment.tools;
        let within = self.environment.patience.tool;
        let list = || async move {
            match tools.list(within).await {
                Ok(listed) => Ok(Ok(listed)),
                Err(ListError { message, is_final: true }) => Ok(Err(message)),
                Err(ListError { message, is_final: false }) => Err(ExternalWait::McpUnavailable { message }),
            }
        };
        let (result, time) = wait::retry(list, self.environment, self.observer).await;
        self.recorder.exclude_from_work(time);
        let event = match result {
            WaitResult::Stopped => return Ok(Vec::new()),
            WaitResult::Done(Ok(listed)) => {
                let run = self.conversation.run();
                let unpinned = unpinned_tools(run, &listed);
                let events = std::iter::once(fix_catalogue(run, listed)).chain(unpinned);
                return events.map(|event| self.recorder.append(event)).collect();
            }
            WaitResult::Done(Err(message)) => wait::tools_unavailable(&message),
            WaitResult::TimedOut(event) => *event,
        };
        self.recorder.append(event).map(|entry| vec![entry])
    }

    async fn gather_context(self) -> Result<Vec<Entry>, Error> {
        let wanted = self.conversation.run().skill.context.clone().unwrap_or_default();
        let gathered = self.environment.core.gather(&wanted, self.environment.patience.tool);
        let event = tokio::select! {
            // The next attempt gathers the context again.
            _ = self.environment.stop.wait() => return Ok(Vec::new()),
            parts = gathered => Event::ContextGathered { parts },
        };
        self.recorder.append(event).map(|entry| vec![entry])
    }

    async fn call_model(mut self, request: ModelRequest<'_>) -> Result<Vec<Entry>, Error> {
        let Environment { model, stop, cache, .. } = self.environment;
        if request.stage == Stage::Selection
            && let Some(selected) = selection::from_cache(self.conversation, cache, self.recorder.files())
        {
            return self.recorder.append(selected).map(|entry| vec![entry]);
        }
        // Waits for a missing key before the request is recorded: if the worker is lost, a recorded request spends its reserve of tokens.
        let name = request.model;
        let ready = || async move { model.missing_key(name).map_or(Ok(()), Err) };
        let (result, time) = self.with_deferral(wait::retry(ready, self.environment, self.observer)).await?;
        self.recorder.exclude_from_work(time);
        match result {
            WaitResult::Stopped => return Ok(Vec::new()),
            WaitResult::TimedOut(event) => return self.recorder.append(*event).map(|entry| vec![entry]),
            WaitResult::Done(()) => {}
        }
        let reserve = request.reserve;
        let requested = self.begin(Event::ModelRequested { reserve, stage: request.stage })?;
        let (began, remaining) = (Instant::now(), self.remaining());
        let observer = self.observer;
        let waiting = |wait| observer.waiting(Some(wait));
        let waits = Pauses::new(&waiting);
        let event = tokio::select! {
            // The request is dropped. Its reserve counts as spent, and the next attempt sends the request again.
            _ = stop.wait() => None,
            event = model.complete(&request, remaining, &waits) => Some(event),
        };
        observer.waiting(None);
        let worked = began.elapsed().saturating_sub(waits.total());
        self.recorder.exclude_from_work(waits.total());
        let event = match event {
            Some(Event::ModelFailed { .. }) if worked >= remaining => Some(self.duration_limit_event()),
            other => other,
        };
        let mut entries = vec![requested];
        if let Some(event) = event {
            entries.push(self.recorder.append(event)?);
        }
        Ok(entries)
    }

    async fn run_reads(self, calls: &[ToolCall<'_>]) -> Result<Vec<Entry>, Error> {
        let progress = ProgressBuffer::new();
        if calls.iter().all(is_read_in_pod) {
            let finished = self.with_deferral(self.read(calls, &progress)).await?;
            return self.record(finished, &progress);
        }
        self.flush()?;
        let (finished, mut entries) = self.record_progress(&progress, self.read(calls, &progress)).await?;
        entries.extend(self.record(finished, &progress)?);
        Ok(entries)
    }

    /// Waits for something that needs no durable event. Events may stay in the buffer meanwhile, but only for a limited time.
    async fn with_deferral<R>(&self, work: impl Future<Output = R>) -> Result<R, Error> {
        let mut work = pin!(work);
        tokio::select! {
            biased;
            done = &mut work => return Ok(done),
            () = sleep_until(self.recorder.flush_time()) => {}
        }
        self.flush()?;
        Ok(work.await)
    }

    /// Makes all events durable, and publishes them. The conversation has all of them.
    fn flush(&self) -> Result<(), Error> {
        self.recorder.make_durable()?;
        self.publish(self.recorder.position());
        Ok(())
    }

    /// Performs calls, and records their progress while they run.
    async fn record_progress<R>(
        &self,
        progress: &ProgressBuffer,
        calls: impl Future<Output = R>,
    ) -> Result<(R, Vec<Entry>), Error> {
        let mut calls = pin!(calls);
        let mut entries = Vec::new();
        loop {
            let due = tokio::select! {
                biased;
                done = &mut calls => return Ok((done, entries)),
                due = progress.due() => due,
            };
            for (call, progress) in due {
                entries.push(self.recorder.append(Event::ToolProgressed { call, progress })?);
            }
            self.recorder.make_durable()?;
            self.recorder.print();
        }
    }

    /// Records finished calls.
    fn record(&self, calls: Vec<FinishedCall>, progress: &ProgressBuffer) -> Result<Vec<Entry>, Error> {
        let (focus, files) = (self.environment.core.focus(), self.recorder.files());
        let calls = calls.into_iter().map(|call| self.redacted(call.with_unrecorded(progress)));
        let calls = calls.collect::<Result<_, _>>()?;
        self.recorder.append_all(events_of_calls(calls, self.conversation, focus, files))
    }

    /// Makes calls that only read, and returns those that finished. If the run is to stop, the others are dropped, and a later attempt
    /// repeats them.
    async fn read(&self, calls: &[ToolCall<'_>], progress: &ProgressBuffer) -> Vec<FinishedCall> {
        let Environment { stop, patience, .. } = self.environment;
        let within = patience.tool.min(self.remaining());
        let (environment, files, spec) = (self.environment, self.recorder.files(), &self.conversation.run().skill);
        let mut running = futures::stream::iter(calls.iter().enumerate())
            .map(|(at, call)| async move { (at, send_call(call, within, environment, spec, (files, progress)).await) })
            .buffer_unordered(MAX_CONCURRENT_READS);
        let mut finished = Vec::with_capacity(calls.len());
        loop {
            tokio::select! {
                _ = stop.wait() => break,
                call = running.next() => match call {
                    Some(call) => finished.push(call),
                    None => break,
                },
            }
        }
        finished.sort_by_key(|(at, _)| *at);
        finished.into_iter().map(|(_, call)| call).collect()
    }

    async fn run_effect(mut self, call: &ToolCall<'_>) -> Result<Vec<Entry>, Error> {
        let started = self.begin(Event::ToolStarted { call: call.id.clone() })?;
        let Environment { stop, patience, .. } = self.environment;
        let (progress, spec) = (ProgressBuffer::new(), &self.conversation.run().skill);
        let sent = async {
            // The Job's remaining duration does not limit the call, because a person would have to decide about a call that is cut short.
            tokio::select! {
                finished = send_call(call, patience.tool, self.environment, spec, (self.recorder.files(), &progress)) => finished,
                reason = stop.grace_over(|reason| patience.grace_for(reason)) => {
                    FinishedCall::from(Event::ToolIndeterminate {
                        call: call.id.clone(),
                        text: abandoned(reason, patience.grace_for(reason)),
                    })
                }
            }
        };
        let (finished, reports) = self.record_progress(&progress, sent).await?;
        let mut entries = vec![started];
        entries.extend(reports);
        // Recorded before the outcome of the call, because it may be the reason why the call was abandoned.
        if let Some(directive) = stop.requested().and_then(|request| request.reason.directive()) {
            entries.push(self.recorder.append(Event::DirectiveReceived { directive })?);
        }
        entries.extend(self.record(vec![finished], &progress)?);
        self.recorder.make_durable()?;
        Ok(entries)
    }

    /// Redacts the outcome of a call, before any of it is stored.
    fn redacted(&self, call: FinishedCall) -> Result<FinishedCall, Error> {
        let outcome = self.recorder.redacted(call.outcome)?;
        Ok(FinishedCall { outcome, ..call })
    }

    /// Moves results of earlier calls to the focus cache. Each is stored before its event is recorded.
    fn offload(self, results: &[Offload<'_>]) -> Result<Vec<Entry>, Error> {
        let offloaded = results::offload(results, self.environment.core.focus(), self.recorder.files())?;
        self.recorder.append_all(offloaded)
    }

    /// Records the event that begins an act, makes all events durable, and publishes the state before the act.
    fn begin(&mut self, beginning: Event) -> Result<Entry, Error> {
        let before = self.recorder.end();
        let entry = self.recorder.append(beginning)?;
        self.recorder.make_durable()?;
        self.publish(before);
        Ok(entry)
    }

    /// Prints durable events, and passes the state to the observer. `before` is the log's position before the current act, because the
    /// conversation does not have the act's first event yet.
    fn publish(&self, before: LogPosition) {
        self.recorder.print();
        self.observer.state_changed(project(self.conversation, before));
    }

    /// Returns the working time that the Job's duration limit still allows.
    fn remaining(&self) -> Duration {
        let limit = Duration::from_secs(self.conversation.run().limits.duration_seconds);
        limit.saturating_sub(Duration::from_millis(self.conversation.budget().spent_ms()))
    }

    fn duration_limit_event(&self) -> Event {
        let seconds = self.conversation.run().limits.duration_seconds;
        let message = format!(
            "the model had not answered after {seconds} s of work, which is the limit that limits.duration sets"
        );
        Event::LimitHit { code: OutcomeCode::DurationLimit, message }
    }
}
