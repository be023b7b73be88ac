//! Overviews of the file systems for the start of a conversation: their structure and their recent changes.

mod changes;
mod history;

use crate::Error;
use crate::call::Deadline;
use crate::list;
use crate::{Bound, Workspace};

/// The limit on the overviews of all file systems together, in bytes.
const MAX_BYTES: usize = 16 * 1024;

/// The kinds of overviews that a Skill selects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OverviewSelection {
    /// The directory structure.
    pub structure: bool,
    /// The recent changes.
    pub changes: bool,
}

/// An overview of one file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overview {
    /// The name of the resource.
    pub resource: String,
    /// The kind of overview.
    pub kind: OverviewKind,
    /// The text, or the reason that it is missing.
    pub text: Result<String, Error>,
}

/// The kind of an overview.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverviewKind {
    /// The directory structure.
    Structure,
    /// The recent changes.
    Changes,
}

impl Workspace {
    /// Returns the overviews of all file systems, in the order of the Skill. Overviews beyond the size limit become errors.
    pub fn overviews(&self, selection: OverviewSelection) -> Vec<Overview> {
        let deadline = Deadline::start(crate::call::CALL_TIMEOUT);
        let mut room = MAX_BYTES;
        self.build_overviews(selection, |bound, kind| {
            let text = self.open(bound).and_then(|root| match kind {
                OverviewKind::Structure => list::overview(&root, &deadline),
                OverviewKind::Changes => changes::overview(&root, &deadline),
            })?;
            room = room.checked_sub(text.len()).ok_or("The overviews together are larger than the limit.")?;
            Ok(text)
        })
    }

    /// Returns the selected overviews, all failed with `reason`.
    pub fn failed_overviews(&self, selection: OverviewSelection, reason: &str) -> Vec<Overview> {
        self.build_overviews(selection, |_, _| Err(reason.into()))
    }

    fn build_overviews(
        &self,
        selection: OverviewSelection,
        mut text: impl FnMut(&Bound, OverviewKind) -> Result<String, Error>,
    ) -> Vec<Overview> {
        let kinds = [(OverviewKind::Structure, selection.structure), (OverviewKind::Changes, selection.changes)];
        let selected: Vec<OverviewKind> =
            kinds.into_iter().filter_map(|(kind, is_selected)| is_selected.then_some(kind)).collect();
        let pairs = self.bindings.iter().flat_map(|bound| selected.iter().map(move |kind| (bound, *kind)));
        pairs
            .map(|(bound, kind)| Overview { resource: bound.binding.name.clone(), kind, text: text(bound, kind) })
            .collect()
    }
}
