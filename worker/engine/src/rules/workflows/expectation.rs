//! The conditions that a call must meet to complete a step of a workflow.

use crate::condition::{self, Arguments, Condition, Dialect, Node};
use crate::record::{self, CallFacts};
use bloomery_crds::v1alpha1::StepExpectation;
use serde_json::Value;

/// A call that completed without error.
pub(crate) struct CompletedCall<'a> {
    /// The name of the tool.
    pub(crate) tool: &'a str,
    /// The `seq` of the event.
    pub(crate) seq: u64,
    /// The arguments, if they can be read.
    pub(crate) arguments: Option<&'a Value>,
    /// The result as text, if it is known completely.
    pub(crate) result: Option<&'a str>,
    /// The facts that conditions read.
    pub(crate) facts: CallFacts<'a>,
}

/// A compiled condition of a step.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Expectation {
    text: String,
    reason: Option<String>,
    compiled: Result<Condition, condition::Error>,
    /// Whether the condition reads the result, so that it can only be evaluated after the call.
    pub(super) reads_result: bool,
}

impl Expectation {
    /// Compiles the condition of an entry of `expect`, if it has one.
    pub(super) fn new(expected: &StepExpectation) -> Option<Self> {
        let text = expected.condition.as_deref()?;
        let compiled = Condition::compile_as(text, Dialect::Step);
        let reads_result = |condition: &Condition| condition.nodes().iter().any(|node| **node == Node::Result);
        Some(Self {
            text: text.to_owned(),
            reason: expected.reason.clone(),
            // A condition that cannot be compiled is not met. So its call is not made.
            reads_result: compiled.as_ref().is_ok_and(reads_result),
            compiled,
        })
    }

    /// Returns the reason why a call does not meet the condition, or nothing if it does.
    pub(super) fn fault(
        &self,
        arguments: &Result<Arguments<'_>, condition::Error>,
        facts: &CallFacts<'_>,
    ) -> Option<String> {
        let decided = match (&self.compiled, arguments) {
            (Ok(condition), Ok(arguments)) => condition.decide(*arguments, &[], facts),
            (Err(error), _) | (_, Err(error)) => Err(error.clone()),
        };
        match decided {
            Ok(true) => None,
            Ok(false) => Some(self.reason.clone().unwrap_or_else(|| format!("{} is not true", self.text))),
            Err(error) => Some(condition::without_result(&self.text, self.reason.as_deref(), &error)),
        }
    }
}

impl CompletedCall<'_> {
    /// Returns the result as JSON, or as a text if it is not JSON.
    pub(super) fn result_value(&self) -> Option<Value> {
        self.result.map(|text| record::read_json(text).unwrap_or_else(|| Value::String(text.to_owned())))
    }
}
