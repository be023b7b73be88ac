//! The state of the opening.

use crate::catalogue;
use crate::endpoint;
use crate::event::{ContextKind, ContextPart, Event};
use crate::line::Entry;
use crate::rules::Rules;
use crate::shared::Shared;
use crate::tool::CatalogueTool;

/// The progress of the opening.
#[derive(Debug, Default)]
pub(crate) struct Opening {
    pub(super) resources_bound: bool,
    /// The gathered context; none before it was gathered.
    pub(super) context: Option<Vec<ContextPart>>,
}

impl Opening {
    pub(crate) fn apply(&mut self, entry: &Entry, shared: &mut Shared) {
        match &entry.event {
            Event::CatalogueFixed { tools } => fix_catalogue(tools, shared),
            Event::ResourcesBound { .. } => self.resources_bound = true,
            Event::ContextGathered { parts } => {
                shared.earlier = earlier(parts).filter(|part| part.fault.is_none()).map(|part| part.text.clone());
                self.context = Some(parts.clone());
            }
            Event::ConversationOpened { system, goal, .. } => {
                shared.history.open(system, goal, &mut shared.budget);
                shared.join_messages();
            }
            _ => {}
        }
    }

    /// The reason why the earlier conversation could not be read.
    pub(super) fn earlier_fault(&self) -> Option<&str> {
        earlier(self.context.as_deref()?)?.fault.as_deref()
    }
}

fn fix_catalogue(tools: &[CatalogueTool], shared: &mut Shared) {
    // The first tools stay. A later event is forged: it could make a tool read-only that needs an approval.
    if shared.catalogue.is_fixed() {
        return;
    }
    let tools = catalogue::as_declared(tools, &shared.run.skill);
    shared.catalogue.fix(&tools);
    shared.budget.add_to_prompt(shared.catalogue.visible().iter().map(catalogue::prompt_bytes).sum());
    let endpoint_remarks = endpoint::remarks(&shared.run.skill.resources, &shared.run.resources);
    shared.rules = Rules::compile(&shared.run.skill, &tools).with_remarks(endpoint_remarks);
}

fn earlier(parts: &[ContextPart]) -> Option<&ContextPart> {
    parts.iter().find(|part| part.kind == ContextKind::Earlier)
}
