//! Approvals: held calls as people decide on them.
//!
//! They are made of what a worker reports ([`build`]), by the replica that takes the report ([`create`]). What follows of
//! those that stand is decided over values ([`evaluate`]); the Job controller carries it out ([`store`]), as long as
//! what checks decisions is installed as it was shipped ([`policy`]). Those that a Job has left behind expire ([`orphans`]).

pub mod build;
pub mod create;
pub mod evaluate;
pub mod orphans;
pub mod policy;
pub mod store;

use bloomery_crds::names;
use bloomery_crds::v1alpha1::HeldCall;

/// The names of the Approvals of a call, one for each approver, in the order in which the call names them.
pub fn approval_names(job: &str, uid: &str, call: &HeldCall) -> Vec<String> {
    call.approvers.iter().map(|approver| names::approval(job, uid, &call.id, approver)).collect()
}
