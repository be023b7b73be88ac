//! People, as the driver deals with them: what they are asked, and what they say by themselves.

use super::act::durable;
use super::{Journal, Model, Tools, World};
use crate::stop::Why;
use bloomery_crds::report::ParkReason;
use bloomery_engine::line::Entry;
use bloomery_engine::people::{HumanRequest, Statement};
use bloomery_engine::{Conversation, Event};
use bloomery_journal::{Error, files::Files};
use futures::FutureExt;
use futures::future::LocalBoxFuture;
use std::fmt;
use tokio::time::Instant;

/// The people who decide and answer while a conversation runs.
pub trait People: fmt::Debug + Sync {
    /// Whether they are asked here. Where they are not, a conversation that needs them parks, and is told what they
    /// said when it goes on.
    fn are_here(&self) -> bool;

    /// What they have said since this was asked last, without being asked here. Never waits.
    fn heard(&self) -> Vec<Statement>;

    /// Asks all of this, and gives the first thing that anybody says; what is still open is asked again then. None
    /// where they have left, so that nobody will answer any more. Dropping the future takes the questions back.
    fn ask<'a>(&'a self, asks: &'a [HumanRequest<'a>]) -> LocalBoxFuture<'a, Option<Statement>>;
}

/// Nobody: a call that is held parks the conversation.
#[derive(Debug, Clone, Copy)]
pub struct Nobody;

impl People for Nobody {
    fn are_here(&self) -> bool {
        false
    }

    fn heard(&self) -> Vec<Statement> {
        Vec::new()
    }

    fn ask<'a>(&'a self, _: &'a [HumanRequest<'a>]) -> LocalBoxFuture<'a, Option<Statement>> {
        futures::future::ready(None).boxed_local()
    }
}

/// What came of asking.
pub(super) enum Answered {
    /// Somebody said something: it is in the log, durable and not applied yet.
    Said(Vec<Entry>),
    /// Nobody answers here.
    Nobody(ParkReason),
    /// The run is to stop.
    Stopped(Why),
}

/// Asks people, for as long as they take: that is no work. What they are asked about is durable before, and what they
/// say at once, so that nobody has to say it twice.
pub(super) async fn ask<M: Model, T: Tools, F: Files>(
    asks: &[HumanRequest<'_>],
    conversation: &Conversation,
    journal: &mut Journal<F>,
    world: &World<'_, M, T>,
) -> Result<Answered, Error> {
    let nobody = Answered::Nobody(reason(asks));
    if !world.people.are_here() {
        return Ok(nobody);
    }
    durable(conversation, journal, world)?;
    let began = Instant::now();
    let said = tokio::select! {
        biased;
        asked = world.stop.wait() => Err(asked.why),
        said = world.people.ask(asks) => Ok(said),
    };
    journal.waited(began.elapsed());
    match said {
        Err(why) => Ok(Answered::Stopped(why)),
        Ok(None) => Ok(nobody),
        Ok(Some(said)) => record(vec![said], journal).map(Answered::Said),
    }
}

/// Writes down what people have said.
pub(super) fn record<F: Files>(said: Vec<Statement>, journal: &mut Journal<F>) -> Result<Vec<Entry>, Error> {
    let entries = journal.append_all(said.into_iter().map(Event::from).collect())?;
    journal.sync()?;
    Ok(entries)
}

fn reason(asks: &[HumanRequest<'_>]) -> ParkReason {
    let held = asks.iter().any(|ask| matches!(ask, HumanRequest::Approval(_)));
    if held { ParkReason::Approval } else { ParkReason::Reply }
}
