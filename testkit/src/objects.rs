//! Objects of a cluster.

pub mod approvals;
pub mod jobs;
