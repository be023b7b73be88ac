//! The commands for a cluster, as people call them, against an API server in memory.
#![cfg(test)]

mod approvals;
mod jobs;
mod shell;
