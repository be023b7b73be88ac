//! Child Jobs: Jobs that others invoke with the core tool `use_skill`.
//!
//! A report carries the requests, and [`crate::report::merge`] records them in the status of the parent. The Job controller of the leader
//! creates the children ([`crate::job`]). Every replica answers reports with their states.

pub mod build;
pub mod family;
pub mod refusal;
pub mod state;
