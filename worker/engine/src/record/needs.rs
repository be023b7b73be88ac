//! The facts that the conditions of a Skill read. The record keeps no others.

use crate::condition::{self, Condition, Earlier, Node};
use bloomery_crds::tool_pattern::matches;
use bloomery_crds::v1alpha1::SkillSpec;

/// The facts that a record keeps.
#[derive(Debug, Default)]
pub(super) struct Needs {
    /// Whether a rule asks for what people wrote.
    pub(super) from_user: bool,
    from_tools: Vec<String>,
    calls: Vec<String>,
    results: Vec<String>,
}

impl Needs {
    /// Returns the facts that the rules of a Skill read.
    pub(super) fn new(skill: &SkillSpec) -> Self {
        let mut needs = Self { from_user: skill.tools.iter().any(|tool| !tool.sends.is_empty()), ..Self::default() };
        for written in condition::written(skill) {
            // A condition that cannot be compiled reads nothing.
            let Ok(compiled) = Condition::compile_as(written.text, written.dialect) else { continue };
            for node in compiled.nodes() {
                match node {
                    Node::FromUser(_) => needs.from_user = true,
                    Node::FromTool(_, tool) => needs.from_tools.push(tool.clone()),
                    Node::Earlier(Earlier::Calls, tool) => needs.calls.push(tool.clone()),
                    Node::Earlier(Earlier::Results, tool) => needs.results.push(tool.clone()),
                    _ => {}
                }
            }
        }
        needs
    }

    /// Returns whether a rule reads the arguments of a tool's calls.
    pub(super) fn wants_calls(&self, tool: &str) -> bool {
        is_named(&self.calls, tool)
    }

    /// Returns whether a rule reads the results of a tool.
    pub(super) fn wants_results(&self, tool: &str) -> bool {
        is_named(&self.results, tool)
    }

    /// Returns whether a rule asks for values in the results of a tool.
    pub(super) fn wants_values(&self, tool: &str) -> bool {
        is_named(&self.from_tools, tool)
    }
}

fn is_named(patterns: &[String], tool: &str) -> bool {
    patterns.iter().any(|pattern| matches(pattern, tool))
}
