//! Asks people, and records what they say.

use super::act::make_durable;
use super::environment::{Environment, Observer};
use super::recorder::Recorder;
use crate::stop::StopReason;
use bloomery_crds::report::ParkReason;
use bloomery_engine::line::Entry;
use bloomery_engine::people::{HumanRequest, Statement};
use bloomery_engine::{Conversation, Event};
use bloomery_journal::{Error, files::Files};
use tokio::time::Instant;

/// The result of asking people.
pub(super) enum PeopleResult {
    /// Somebody answered. The statement is durable in the log, and not applied yet.
    Answered(Vec<Entry>),
    /// Nobody answers here.
    Unavailable(ParkReason),
    /// The run is to stop.
    Stopped(StopReason),
}

/// Asks people, without a time limit; waiting for them does not count as work. What they are asked about is durable before
/// they are asked, and their statement is durable at once, so that nobody has to repeat it.
pub(super) async fn ask<M, T, F: Files>(
    requests: &[HumanRequest<'_>],
    conversation: &Conversation,
    recorder: &mut Recorder<F>,
    environment: &Environment<'_, M, T>,
    observer: &dyn Observer,
) -> Result<PeopleResult, Error> {
    let unavailable = PeopleResult::Unavailable(park_reason(requests));
    if !environment.people.are_here() {
        return Ok(unavailable);
    }
    make_durable(conversation, recorder, observer)?;
    let began = Instant::now();
    let statement = tokio::select! {
        biased;
        request = environment.stop.wait() => Err(request.reason),
        statement = environment.people.ask(requests) => Ok(statement),
    };
    recorder.waited(began.elapsed());
    match statement {
        Err(reason) => Ok(PeopleResult::Stopped(reason)),
        Ok(None) => Ok(unavailable),
        Ok(Some(statement)) => record(vec![statement], recorder).map(PeopleResult::Answered),
    }
}

/// Records statements of people durably.
pub(super) fn record<F: Files>(statements: Vec<Statement>, recorder: &mut Recorder<F>) -> Result<Vec<Entry>, Error> {
    let entries = recorder.append_all(statements.into_iter().map(Event::from).collect())?;
    recorder.sync()?;
    Ok(entries)
}

fn park_reason(requests: &[HumanRequest<'_>]) -> ParkReason {
    let held = requests.iter().any(|request| matches!(request, HumanRequest::Approval(_)));
    if held { ParkReason::Approval } else { ParkReason::Reply }
}
