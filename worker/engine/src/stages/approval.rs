//! The approvals of held calls: a held call waits until its approvers have decided. The steps of `calls` ask them.

mod apply;
mod held;
mod hold;
mod tampered;

pub(crate) use apply::{apply, counts, is_awaited};
pub use held::ApprovalRequest;
pub(crate) use held::{approval_request, held_call};
pub use hold::Hold;
pub(crate) use tampered::tampering;

#[cfg(test)]
mod tests;
