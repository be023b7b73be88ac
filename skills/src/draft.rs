//! Drafts: the readable parts of Skills with faults. Checks beyond the schema use them to report their findings in the same run.

mod gaps;
mod salvage;

use crate::finding::Finding;
use crate::schema::spec::spec_schema_of;
use crate::tree::{Entry, Node, Value, locate};
use bloomery_crds::v1alpha1::{ResourceDeclaration, SkillSpec};
use gaps::Gaps;
use salvage::Salvage;

/// The readable part of a Skill. It is only checked, never used. Values with faults are omitted or replaced.
#[derive(Debug)]
pub struct Draft {
    /// The readable part of the spec. A required value that cannot be read is replaced with a placeholder.
    pub spec: SkillSpec,
    /// The tree with the field names of the API.
    pub root: Node,
    gaps: Gaps,
}

impl Draft {
    /// Reads the spec of a Skill. `refused` are the document paths of unsupported values, and `findings` are those of the schema
    /// check.
    /// Returns `None` if nothing of the spec can be read.
    pub(crate) fn read(spec: &Node, refused: &[String], findings: &[Finding]) -> Option<Self> {
        let spec_path = spec.place.to_string();
        if refused.iter().any(|path| path.is_empty() || *path == spec_path) {
            return None;
        }
        let schema = spec_schema_of("Skill")?;
        let mut salvage = Salvage::new(refused);
        let kept = salvage.keep_value(spec, schema, "spec")?;
        let gaps = Gaps::new(&kept, schema, salvage.unknown, refused, findings);
        let mut skill_spec: SkillSpec = serde_json::from_value(kept.json()).ok()?;
        gaps.fill(&mut skill_spec, &kept);
        let place = kept.place.clone();
        let value = Value::Map(vec![Entry { name: "spec".to_owned(), place: place.clone(), node: kept }]);
        Some(Self { spec: skill_spec, root: Node { place, value }, gaps })
    }

    /// Returns whether a finding at an API path should be dropped. It may be wrong because a value could not be read, or it may
    /// repeat an error.
    pub fn is_doubtful(&self, path: &str) -> bool {
        let (.., document_path) = locate(&self.root, path);
        self.gaps.has_error_at(&document_path) || self.gaps.affects(path)
    }

    /// Returns the resources that the Skill declares, if all of them could be read.
    pub fn resources(&self) -> Option<&[ResourceDeclaration]> {
        self.gaps.has_all_resources().then_some(&self.spec.resources)
    }
}

#[cfg(test)]
mod tests;
