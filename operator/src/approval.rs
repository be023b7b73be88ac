//! Approvals: held calls as people decide on them.
//!
//! They are made of what a worker reports ([`build`]), by the replica that takes the report ([`ask`]). What follows of
//! those that stand is decided over values ([`standing`]); the Job controller carries it out ([`settle`]), as long as
//! what checks decisions is installed as it was shipped ([`guard`]). Those that a Job has left behind expire ([`orphans`]).

pub mod ask;
pub mod build;
pub mod guard;
pub mod orphans;
pub mod settle;
pub mod standing;

use bloomery_crds::names;
use bloomery_crds::v1alpha1::HeldCall;

/// The names of the Approvals of a call, one for each approver, in the order in which the call names them.
pub fn names_of(job: &str, uid: &str, call: &HeldCall) -> Vec<String> {
    call.approvers.iter().map(|approver| names::approval(job, uid, &call.id, approver)).collect()
}
