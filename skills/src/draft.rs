//! What can be read of a Skill, faults or not, so that whoever looks further than the schema finds the other faults in
//! the same run.

mod gaps;
mod salvage;

use crate::finding::Finding;
use crate::tree::{Entry, Node, Value, locate};
use bloomery_crds::v1alpha1::{ResourceDeclaration, SkillSpec, spec_schema_of};
use gaps::Gaps;
use salvage::Salvage;

/// A Skill for findings only: it is never written. Where its document has faults, values are left out of it, and
/// others are filled in.
#[derive(Debug)]
pub struct Draft {
    /// What can be read, and the least that stands in for what cannot.
    pub spec: SkillSpec,
    /// The tree in which a path of the API is to be looked up.
    pub root: Node,
    gaps: Gaps,
}

impl Draft {
    /// Reads a Skill's spec. `refused` are the paths of what the reader could not take, `findings` what is known to be
    /// wrong.
    pub(crate) fn read(spec: &Node, refused: &[String], findings: &[Finding]) -> Option<Self> {
        let own = spec.place.to_string();
        if refused.iter().any(|path| path.is_empty() || *path == own) {
            return None;
        }
        let schema = spec_schema_of("Skill")?;
        let mut salvage = Salvage::new(refused);
        let kept = salvage.value(spec, schema, "spec")?;
        let gaps = Gaps::new(&kept, schema, salvage.unknown, refused, findings);
        let mut read: SkillSpec = serde_json::from_value(kept.json()).ok()?;
        gaps.close(&mut read, &kept);
        let place = kept.place.clone();
        let value = Value::Map(vec![Entry { name: "spec".to_owned(), place: place.clone(), node: kept }]);
        Some(Self { spec: read, root: Node { place, value }, gaps })
    }

    /// Whether what is found at a path of the API may only follow from what could not be read, or says again what was
    /// said of it.
    pub fn is_doubtful(&self, path: &str) -> bool {
        let (.., written) = locate(&self.root, path);
        self.gaps.are_told(&written) || self.gaps.concern(path)
    }

    /// The resources that the Skill declares, where all of them could be read.
    pub fn resources(&self) -> Option<&[ResourceDeclaration]> {
        self.gaps.spare_resources().then_some(&self.spec.resources)
    }
}

#[cfg(test)]
mod tests;
