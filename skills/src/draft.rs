//! Drafts: as much of a Skill as can be read, whatever its faults. Checks beyond the schema can so report their findings
//! in the same run.

mod gaps;
mod salvage;

use crate::finding::Finding;
use crate::tree::{Entry, Node, Value, locate};
use bloomery_crds::v1alpha1::{ResourceDeclaration, SkillSpec, spec_schema_of};
use gaps::Gaps;
use salvage::Salvage;

/// A Skill that is only checked, never written. Values with faults are left out or filled in.
#[derive(Debug)]
pub struct Draft {
    /// The readable part of the spec. A required value that cannot be read is the least that the schema allows.
    pub spec: SkillSpec,
    /// The tree in which a path of the API is looked up.
    pub root: Node,
    gaps: Gaps,
}

impl Draft {
    /// Reads a Skill's spec. `refused` are the paths of values that could not be read as written, `findings` the faults that
    /// are already reported.
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
        gaps.fill(&mut read, &kept);
        let place = kept.place.clone();
        let value = Value::Map(vec![Entry { name: "spec".to_owned(), place: place.clone(), node: kept }]);
        Some(Self { spec: read, root: Node { place, value }, gaps })
    }

    /// Whether a finding at a path of the API may only follow from a value that could not be read, or repeats what is
    /// already reported there.
    pub fn is_doubtful(&self, path: &str) -> bool {
        let (.., written) = locate(&self.root, path);
        self.gaps.are_reported_at(&written) || self.gaps.concern(path)
    }

    /// Returns the resources that the Skill declares, if all of them could be read.
    pub fn resources(&self) -> Option<&[ResourceDeclaration]> {
        self.gaps.know_all_resources().then_some(&self.spec.resources)
    }
}

#[cfg(test)]
mod tests;
