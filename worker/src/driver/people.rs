//! Asks people, and records their statements.

use super::environment::{Environment, Observer};
use super::recorder::Recorder;
use super::wait::Awaited;
use bloomery_crds::report::ParkReason;
use bloomery_engine::line::Entry;
use bloomery_engine::people::{HumanRequest, Statement};
use bloomery_engine::projection::project;
use bloomery_engine::{Conversation, Event};
use bloomery_journal::{Error, files::Files};
use tokio::time::Instant;

/// Asks people, without a time limit. Waiting for them does not count as work. All events are durable before people are asked, and a
/// statement is durable as soon as it is made.
pub(super) async fn ask<M, T, F: Files>(
    requests: &[HumanRequest<'_>],
    conversation: &Conversation,
    recorder: &mut Recorder<F>,
    environment: &Environment<'_, M, T>,
    observer: &dyn Observer,
) -> Result<Awaited, Error> {
    let unavailable = Awaited::Unavailable(park_reason(requests));
    if !environment.people.can_be_asked() {
        return Ok(unavailable);
    }
    recorder.make_durable()?;
    recorder.print();
    observer.state_changed(project(conversation, recorder.position()));
    let began = Instant::now();
    let statement = tokio::select! {
        biased;
        request = environment.stop.wait() => Err(request.reason),
        statement = environment.people.ask(requests) => Ok(statement),
    };
    recorder.exclude_from_work(began.elapsed());
    match statement {
        Err(reason) => Ok(Awaited::Stopped(reason)),
        Ok(None) => Ok(unavailable),
        Ok(Some(statement)) => record(vec![statement], recorder).map(Awaited::Recorded),
    }
}

/// Records statements of people durably.
pub(super) fn record<F: Files>(statements: Vec<Statement>, recorder: &mut Recorder<F>) -> Result<Vec<Entry>, Error> {
    let entries = recorder.append_all(statements.into_iter().map(Event::from).collect())?;
    recorder.make_durable()?;
    Ok(entries)
}

fn park_reason(requests: &[HumanRequest<'_>]) -> ParkReason {
    let held = requests.iter().any(|request| matches!(request, HumanRequest::Approval(_)));
    if held { ParkReason::Approval } else { ParkReason::Reply }
}
