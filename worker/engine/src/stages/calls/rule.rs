//! The ruling on a call, as events.

use super::gate::{self, Gate};
use super::state::Call;
use crate::event::Event;
use crate::shared::Shared;
use crate::stages::approval;

/// Returns the state that the pre-tool gate decides by.
pub(crate) fn gate(shared: &Shared) -> Gate<'_> {
    Gate {
        catalogue: &shared.catalogue,
        rules: &shared.rules,
        run: &shared.run,
        allowed: shared.calls.rulings().allowed,
    }
}

/// Returns the ruling on a call and, if the call is held, the question to its approvers.
pub(crate) fn ruled(call: &Call, shared: &Shared) -> Vec<Event> {
    let ruling = gate::rule(call, &gate(shared));
    let held = approval::held_call(call, &ruling);
    let ruled = Event::ToolRuled { call: call.id.clone(), verdict: ruling.verdict, reasons: ruling.reasons };
    std::iter::once(ruled).chain(held.map(|held| Event::ToolHeld { held })).collect()
}
