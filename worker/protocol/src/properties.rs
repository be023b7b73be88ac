//! The properties that hold in every state, and the possibilities that the checker must reach so that the check is meaningful.

use crate::attempt::{At, Attempt};
use crate::conversation::{Act, Call, Line, Outcome, epoch};
use crate::world::{Protocol, World};
use stateright::{Expectation, Property};

/// Invariant 1 of `docs/explanation/design.md`.
pub const ALLOWED: &str = "no effect without an earlier durable Allow";
/// Invariant 2. The other call may be repeated, because its tool is idempotent.
pub const ONE_EFFECT: &str = "no call has two effects";
/// Invariant 3.
pub const NEVER_LOST: &str = "acknowledged lines are never lost and never change";
/// Invariant 3.
pub const GAP_FREE: &str = "the log has no gap";
/// The table of `docs/explanation/engine.md`, section 1.
pub const DURABLE_FIRST: &str = "the lines that an act needs are durable first";
/// Invariant 10.
pub const CLAIMED: &str = "only an attempt with a durable claim acts, so a replay does not act";
/// Invariant 10.
pub const SAME_STATE: &str = "the view of an attempt equals the replayed log";
pub const EPOCHS: &str = "epochs are counted without a gap";
pub const ASKED_ONCE: &str = "a recorded model answer is not requested again";
pub const ONE_END: &str = "a conversation has one end";
pub const PROGRESS: &str = "an attempt without faults finishes the conversation";

/// Invariant 1, for a call that people have to approve.
pub const APPROVED: &str = "no call that needs an approval without the decision in the run document";
/// Invariant 1, for a call that is held by a rule on facts in the log.
pub const DECIDED: &str = "no call that people were asked about without the decision in the run document";
pub const DENIED: &str = "no call that a person has denied";
pub const ADDED_ONCE: &str = "a writer that only adds lines causes no second refund";
pub const UNTOUCHED: &str = "nothing is added to a log that was tampered with";

pub const HONEST: &str = "no Job whose log only workers write ends because the log was tampered with";

const FOUND: &str = "an attempt finds that the log was tampered with";
const REFUNDS: &str = "an approved call is made";
const CHECKS: &str = "an approved read is made";
const LIFTED: &str = "forged facts lift the rule before people are asked";
const SUPERSEDED: &str = "an attempt is superseded";
const LATE_ACT: &str = "a frozen attempt acts after another has taken over";
const LATE_BUFFER: &str = "a frozen attempt has lines in memory after another has taken over";
const REPEATED: &str = "an idempotent call is repeated";
const SUCCEEDS_LATE: &str = "a later attempt succeeds";
const ESCALATES: &str = "a person has to decide about a lost call";

/// Returns whether a property is a possibility, which must be reached.
pub fn is_possibility(name: &str) -> bool {
    all()
        .iter()
        .chain(&despite_lies(Call::Notify))
        .chain(&despite_lies(Call::Check))
        .chain(&despite_forged_facts())
        .any(|property| property.name == name && property.expectation == Expectation::Sometimes)
}

/// Returns the properties that hold even if somebody else writes to the directory. Such a writer can remove the end of a log that is
/// not acknowledged, so a call may happen twice.
pub fn despite_lies(other: Call) -> Vec<Property<Protocol>> {
    let added_once =
        Property::always(ADDED_ONCE, |_, world: &World| world.seen.has_lost_lines || world.seen.refunds <= 1);
    let found = Property::sometimes(FOUND, |_, world: &World| world.seen.tampered);
    // Two attempts make only one of the calls.
    let possible = approvals(other).into_iter().filter(|property| other != Call::Check || property.name != REFUNDS);
    possible.chain([added_once, found]).collect()
}

/// Returns the properties that hold even if somebody else writes facts into the log that lift the rule which holds the calls. Such a
/// call is made without an approval, unless people were asked about it before the attempt began.
pub fn despite_forged_facts() -> Vec<Property<Protocol>> {
    let decided = Property::always(DECIDED, |_, world: &World| !world.seen.undecided);
    let lifted = Property::sometimes(LIFTED, |_, world: &World| world.seen.unapproved);
    let is_kept = |property: &Property<Protocol>| [ADDED_ONCE, UNTOUCHED, REFUNDS].contains(&property.name);
    let kept = despite_lies(Call::Notify).into_iter().filter(is_kept);
    kept.chain([decided, lifted]).collect()
}

/// Returns the properties and possibilities of calls that need approvals.
pub fn with_approvals(other: Call) -> Vec<Property<Protocol>> {
    // More attempts than the checker can try would reach the other possibilities.
    let always = all().into_iter().filter(|property| property.expectation == Expectation::Always);
    let never_tampered = Property::always(HONEST, |_, world: &World| !world.seen.tampered);
    always.chain(approvals(other)).chain([never_tampered]).collect()
}

fn approvals(other: Call) -> Vec<Property<Protocol>> {
    let checks = Property::sometimes(CHECKS, |_, world: &World| world.seen.checks);
    let checks = (other == Call::Check).then_some(checks);
    let all = vec![
        Property::always(APPROVED, |_, world: &World| !world.seen.unapproved),
        Property::always(DENIED, |_, world: &World| !world.people.refund_denied || world.seen.refunds == 0),
        Property::always(UNTOUCHED, |_, world: &World| !world.seen.added_to_tampered),
        Property::sometimes(REFUNDS, |_, world: &World| world.seen.refunds > 0),
    ];
    all.into_iter().chain(checks).collect()
}

/// Returns the properties and possibilities of a log that only workers write, for calls that need no approval.
pub fn all() -> Vec<Property<Protocol>> {
    vec![
        Property::always(ALLOWED, |_, world: &World| !world.seen.unallowed),
        Property::always(ONE_EFFECT, |_, world: &World| world.seen.refunds <= 1),
        Property::always(NEVER_LOST, |_, world: &World| {
            !world.seen.forked && world.volume.durable_log().starts_with(&world.seen.acknowledged)
        }),
        Property::always(GAP_FREE, |_, world: &World| !world.volume.has_gap()),
        Property::always(DURABLE_FIRST, |_, world: &World| !world.seen.too_early),
        Property::always(CLAIMED, |_, world: &World| !world.seen.unclaimed),
        Property::always(SAME_STATE, |_, world: &World| {
            let log = world.volume.log();
            running(world).all(|attempt| log.starts_with(&attempt.view))
        }),
        Property::always(EPOCHS, |_, world: &World| {
            let epochs = world.volume.log().into_iter().filter_map(number);
            epochs.zip(1..).all(|(number, expected)| number == expected)
        }),
        Property::always(ASKED_ONCE, |_, world: &World| {
            let log = world.volume.log();
            let is_answer = |line: &Line| matches!(line, Line::Answered { .. });
            let answered = log.iter().position(is_answer).unwrap_or(log.len());
            log.iter().skip(answered + 1).all(|line| *line != Line::Requested && !is_answer(line))
        }),
        Property::always(ONE_END, |_, world: &World| {
            world.volume.log().iter().filter(|line| matches!(line, Line::Finished(_))).count() <= 1
        }),
        Property::always(PROGRESS, Protocol::makes_progress),
        Property::sometimes(SUPERSEDED, |_, world: &World| {
            let taken = |attempt: &Attempt| world.volume.segments.contains_key(&(attempt.view.len() + 1));
            running(world).any(|attempt| attempt.begun && attempt.at == At::Linking && taken(attempt))
        }),
        Property::sometimes(LATE_ACT, |_, world: &World| {
            let taken_over = |attempt: &Attempt| epoch(&world.volume.durable_log()) > epoch(&attempt.view);
            running(world)
                .any(|attempt| matches!(attempt.act, Act::Effect(_)) && attempt.at == At::Acting && taken_over(attempt))
        }),
        Property::sometimes(LATE_BUFFER, |_, world: &World| {
            let taken_over = |attempt: &Attempt| epoch(&world.volume.durable_log()) > epoch(&attempt.view);
            running(world).any(|attempt| attempt.may_flush() && taken_over(attempt))
        }),
        Property::sometimes(REPEATED, |_, world: &World| {
            world.volume.log().iter().filter(|line| **line == Line::Started(Call::Notify)).count() > 1
        }),
        Property::sometimes(SUCCEEDS_LATE, |_, world: &World| {
            let log = world.volume.log();
            log.contains(&Line::Finished(Outcome::Succeeded)) && epoch(&log) > 1
        }),
        Property::sometimes(ESCALATES, |_, world: &World| {
            world.volume.log().contains(&Line::Finished(Outcome::Indeterminate))
        }),
    ]
}

fn running(world: &World) -> impl Iterator<Item = &Attempt> {
    world.attempts.iter().filter(|attempt| attempt.at != At::Over)
}

fn number(line: Line) -> Option<u8> {
    if let Line::Epoch { number, .. } = line { Some(number) } else { None }
}
