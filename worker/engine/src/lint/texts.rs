//! The lint of the texts of a Skill: its features, its documentation and its notes.

use super::finding::Finding;
use bloomery_crds::docs::Docs;
use bloomery_crds::features;
use bloomery_crds::text::bounded;
use bloomery_crds::v1alpha1::{BankUse, SkillSpec};

/// The most lines of a section that the agent reads as a whole.
const MAX_SECTION_LINES: usize = 50;

/// The most long sections that are reported.
const MAX_REPORTED: usize = 5;

/// The longest anchor in a message, in bytes.
const MAX_SHOWN_BYTES: usize = 64;

pub(super) fn findings(spec: &SkillSpec) -> Vec<Finding> {
    let faults = features::faults(spec).into_iter().map(Finding::from);
    faults.chain(long_sections(spec)).chain(unused_memory(spec)).collect()
}

fn long_sections(spec: &SkillSpec) -> Vec<Finding> {
    let sections = spec.docs.as_deref().map(|docs| Docs::new(docs).sections).unwrap_or_default();
    let sizes = sections.iter().map(|section| (&section.anchor, section.text.lines().count()));
    let long = sizes.filter(|(_, lines)| *lines > MAX_SECTION_LINES).take(MAX_REPORTED);
    long.map(|(anchor, lines)| {
        let message = format!(
            "the section #{} has {lines} lines, and the agent reads whole sections",
            bounded(anchor, MAX_SHOWN_BYTES)
        );
        Finding::warning("spec.docs", message)
            .hint(format!("divide it into sections of at most {MAX_SECTION_LINES} lines"))
    })
    .collect()
}

/// Warns of settings of the memory bank that have no effect, because no Job uses the bank.
fn unused_memory(spec: &SkillSpec) -> Vec<Finding> {
    let Some(memory) = spec.memory.as_ref().filter(|_| spec.bank() == BankUse::Off) else { return Vec::new() };
    let fields = [("notes", !memory.notes.is_empty()), ("scope", memory.scope.is_some())];
    let unused = fields.into_iter().filter(|(_, is_set)| *is_set);
    unused
        .map(|(field, _)| {
            Finding::warning(format!("spec.memory.{field}"), "has no effect, because spec.memory.bank is off")
                .hint("set bank to read or write")
        })
        .collect()
}
