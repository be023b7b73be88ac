//! Starts children, and waits for their ends.

use super::environment::{Environment, Observer};
use super::recorder::Recorder;
use super::wait::Awaited;
use crate::stop::StopReason;
use bloomery_crds::children::ChildRequest;
use bloomery_crds::report::ParkReason;
use bloomery_engine::event::CallId;
use bloomery_engine::line::Entry;
use bloomery_engine::projection::project;
use bloomery_engine::stages::calls::child::event_of;
use bloomery_engine::{Conversation, Event};
use bloomery_journal::{Error, files::Files};
use tokio::time::Instant;

/// Reads the Skills that the Job may invoke, and records the start of the child of a call, or the failure of the call. All events are durable
/// before the Skills are read. Records nothing if the run is to stop.
pub(super) async fn start<M, T, F: Files>(
    call: &CallId,
    conversation: &Conversation,
    recorder: &Recorder<F>,
    environment: &Environment<'_, M, T>,
) -> Result<Vec<Entry>, Error> {
    let skills = tokio::select! {
        _ = environment.stop.wait() => return Ok(Vec::new()),
        skills = environment.children.skills() => skills,
    };
    recorder.append_all(match skills {
        Ok(skills) => conversation.start_child(call, &skills, environment.children.name(call)),
        Err(text) => vec![Event::ToolFailed { call: call.clone(), text }],
    })
}

/// Waits for a request to stop. A child that runs in this process gets the time of a call with effect.
async fn stopped<M, T>(environment: &Environment<'_, M, T>) -> StopReason {
    let Environment { stop, patience, children, .. } = environment;
    if children.run_here() {
        return stop.grace_over(|reason| patience.grace_for(reason)).await;
    }
    stop.wait().await.reason
}

/// Waits until a child has ended, and records its end. Waiting does not count as work. All events are durable before the child is requested,
/// and the end is durable at once.
pub(super) async fn await_end<M, T, F: Files>(
    request: &ChildRequest,
    conversation: &Conversation,
    recorder: &Recorder<F>,
    environment: &Environment<'_, M, T>,
    observer: &dyn Observer,
) -> Result<Awaited, Error> {
    recorder.make_durable()?;
    recorder.print();
    observer.state_changed(project(conversation, recorder.position()));
    observer.children(vec![request.clone()]);
    let began = Instant::now();
    let state = tokio::select! {
        biased;
        reason = stopped(environment) => Err(reason),
        state = environment.children.end(request) => Ok(state),
    };
    recorder.exclude_from_work(began.elapsed());
    match state {
        Err(reason) => Ok(Awaited::Stopped(reason)),
        Ok(state) => match state.and_then(event_of) {
            None => Ok(Awaited::Unavailable(ParkReason::Children)),
            Some(event) => {
                let entries = recorder.append_all(vec![event])?;
                recorder.make_durable()?;
                observer.children(Vec::new());
                Ok(Awaited::Recorded(entries))
            }
        },
    }
}
