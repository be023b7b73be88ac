//! The requirements for closing a step in words.

use bloomery_crds::text::bounded;
use bloomery_crds::tool_pattern::matches;
use bloomery_crds::v1alpha1::StepExpectation;
use std::collections::BTreeSet;

/// The longest list of tools in a sentence, in bytes.
const MAX_TOOLS_BYTES: usize = 256;

/// The requirements for closing a step in words.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct ClosingRule {
    /// Patterns of the tools whose results close the step. A result must be of a tool that all of them match.
    tools: Vec<String>,
    /// The approvers who must agree, each with the reason.
    pub(super) approvers: Vec<(String, Option<String>)>,
    /// The `seq` of each result that closes the step. Used only with tools.
    pub(super) results: BTreeSet<u64>,
}

impl ClosingRule {
    /// Returns the requirements in the entries of `expect` for a step.
    pub(super) fn new<'a>(expected: impl Iterator<Item = &'a StepExpectation>) -> Self {
        let mut closing = Self::default();
        for expected in expected {
            closing.tools.extend(expected.evidence.as_ref().map(|evidence| evidence.tool.clone()));
            closing.approvers.extend(expected.approver.clone().map(|approver| (approver, expected.reason.clone())));
        }
        closing
    }

    /// Returns whether the result of a call of a tool closes the step, if its conditions are met.
    pub(super) fn names(&self, tool: &str) -> bool {
        !self.tools.is_empty() && self.tools.iter().all(|pattern| matches(pattern, tool))
    }

    /// Returns whether an event closes the step. Without tools, every result does.
    pub(super) fn accepts(&self, evidence: u64) -> bool {
        self.tools.is_empty() || self.results.contains(&evidence)
    }

    /// Returns the tools whose results close the step, for messages. `None` if every result does.
    pub(super) fn tools(&self) -> Option<String> {
        (!self.tools.is_empty()).then(|| bounded(&self.tools.join(" and "), MAX_TOOLS_BYTES))
    }
}

/// An approver who must agree before a step is closed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ClosingApprover<'a> {
    /// The approver.
    pub(crate) approver: &'a str,
    /// The reason, as a sentence.
    pub(crate) reason: String,
}
