//! The container of an MCP server that the operator runs: in the pods of a Deployment, or as a sidecar of a worker pod. The scripts of
//! a Skill run in such a sidecar too.

pub mod bridge;
pub mod problem;
pub mod resources;
pub mod scripts;
pub mod sidecar;
