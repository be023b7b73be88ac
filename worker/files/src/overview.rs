//! What of a file system is summed up before a conversation opens: what there is, and what has changed lately.

mod changes;
mod history;

use crate::Error;
use crate::call::Deadline;
use crate::list;
use crate::{Binding, Workspace};

/// The most that is told of all file systems together, in bytes.
const MAX_BYTES: usize = 16 * 1024;

/// Which overviews are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wanted {
    /// What there is.
    pub structure: bool,
    /// What has changed lately.
    pub changes: bool,
}

/// An overview of one file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overview {
    /// The name of the resource.
    pub resource: String,
    /// What it is of.
    pub kind: OverviewKind,
    /// The text, or a sentence why there is none.
    pub text: Result<String, Error>,
}

/// What an overview is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OverviewKind {
    /// What there is.
    Structure,
    /// What has changed lately.
    Changes,
}

impl Workspace {
    /// Looks over all file systems, in the order of the Skill; what has no room any more is said so.
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

    /// The overviews that would be, had they not failed.
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
