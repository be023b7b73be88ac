//! Reserves calls in the ledger of the Skill's limits, and removes them.

use super::environment::Environment;
use super::recorder::Recorder;
use crate::limit_ledger::LimitLedger;
use bloomery_crds::Digest;
use bloomery_engine::Event;
use bloomery_engine::event::CallId;
use bloomery_engine::line::Entry;
use bloomery_engine::rules::limits::Reservation;
use bloomery_journal::{Error, files::Files};

/// Reserves a call. If the worker is lost before the answer is durable, the next one reserves the same call again.
pub(super) fn reserve<M, T, F: Files>(
    reservation: &Reservation<'_>,
    environment: &Environment<'_, M, T>,
    recorder: &Recorder<F>,
) -> Result<Vec<Entry>, Error> {
    let answer = ledger(environment).reserve(recorder.files(), reservation);
    let event = Event::LimitsReserved { call: reservation.call.clone(), answer };
    recorder.append(event).map(|entry| vec![entry])
}

/// Removes a call that is known not to have happened.
pub(super) fn give_back<M, T, F: Files>(
    call: &CallId,
    key: &Digest,
    environment: &Environment<'_, M, T>,
    recorder: &Recorder<F>,
) -> Result<Vec<Entry>, Error> {
    let returned = ledger(environment).give_back(recorder.files(), key);
    let event = Event::LimitsReturned { call: call.clone(), fault: returned.err().map(|error| error.to_string()) };
    recorder.append(event).map(|entry| vec![entry])
}

fn ledger<M, T>(environment: &Environment<'_, M, T>) -> LimitLedger {
    LimitLedger::new(environment.memory, environment.writer)
}
