//! The container of an MCP server that the operator runs: in the pods of a Deployment, or as a sidecar of a worker pod.

pub mod bridge;
pub mod problem;
pub mod resources;
pub mod sidecar;
