//! Summaries of the file systems before a conversation opens: their structure and their recent changes.

mod changes;
mod history;

use crate::Error;
use crate::call::Deadline;
use crate::list;
use crate::{Binding, Workspace};

/// The limit on the overviews of all file systems together, in bytes.
const MAX_BYTES: usize = 16 * 1024;

/// The selection of overviews.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
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
    /// The text, or the reason why there is none.
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
    /// Returns the overviews of all file systems, in the order of the Skill. One that exceeds the limit becomes an error.
    pub fn overviews(&self, wanted: Wanted) -> Vec<Overview> {
        let deadline = Deadline::start(crate::call::CALL_TIMEOUT);
        let mut room = MAX_BYTES;
        self.each(wanted, |binding, kind| {
            let text = self.open(binding).and_then(|root| match kind {
                OverviewKind::Structure => list::overview(&root, &deadline),
                OverviewKind::Changes => changes::overview(&root, &deadline),
            })?;
            room = room.checked_sub(text.len()).ok_or("There is no room for it beside the others.")?;
            Ok(text)
        })
    }

    /// Returns the selected overviews, all failed with the reason `why`.
    pub fn without_overviews(&self, wanted: Wanted, why: &str) -> Vec<Overview> {
        self.each(wanted, |_, _| Err(why.into()))
    }

    fn each(
        &self,
        wanted: Wanted,
        mut text: impl FnMut(&Binding, OverviewKind) -> Result<String, Error>,
    ) -> Vec<Overview> {
        let kinds = [(OverviewKind::Structure, wanted.structure), (OverviewKind::Changes, wanted.changes)];
        let wanted: Vec<OverviewKind> =
            kinds.into_iter().filter_map(|(kind, is_wanted)| is_wanted.then_some(kind)).collect();
        let of_all = self.bindings.iter().flat_map(|binding| wanted.iter().map(move |kind| (binding, *kind)));
        of_all
            .map(|(binding, kind)| Overview { resource: binding.name.clone(), kind, text: text(binding, kind) })
            .collect()
    }
}
