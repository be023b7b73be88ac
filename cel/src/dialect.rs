//! The kinds of expressions.

/// The kind of an expression. It decides which names have a special meaning.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Dialect {
    /// A condition about a call, or a validation rule.
    #[default]
    Call,
    /// A condition about a call that is a step of a workflow. `result` is its result, and `steps` has the earlier steps.
    Step,
}
