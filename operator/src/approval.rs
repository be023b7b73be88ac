//! Approvals: held calls that people decide on.
//!
//! - [`build`] builds the Approvals of a call from a worker's report.
//! - [`create`] creates them, in the replica that receives the report.
//! - [`evaluate`] decides what follows from the existing Approvals: pure, over values.
//! - [`store`] reads and updates stored Approvals for the Job controller.
//! - [`policy`] checks that the admission policy which validates decisions is installed, with its shipped meaning.
//! - `policy_meaning` is what the policy means, without texts and defaults.
//! - [`void_pace`] limits how many Approvals are replaced at once.
//! - [`orphans`] expires Approvals whose Job is gone.

pub mod build;
pub mod create;
pub mod evaluate;
pub mod orphans;
pub mod policy;
mod policy_meaning;
pub mod store;
pub mod void_pace;

use bloomery_crds::names;
use bloomery_crds::v1alpha1::HeldCall;

/// The names of the Approvals of a call, one for each approver, in the order in which the call lists them.
pub fn approval_names(job: &str, job_uid: &str, call: &HeldCall) -> Vec<String> {
    call.approvers.iter().map(|approver| names::approval(job, job_uid, &call.id, approver)).collect()
}
