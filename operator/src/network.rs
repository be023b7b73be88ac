//! The network policies of a tenant's pods: pure.
//!
//! One policy isolates all pods that the operator creates in a namespace, in both directions. The policies of a Skill, of its MCP server
//! and of a Job then allow single connections ([`policies`]). [`egress`] decides which hosts a tenant may connect to. It reads the same
//! tables as the workers, which check each address again when they connect. [`destination`] lists what pods connect to.
//!
//! A policy selects pods, not Services. So a Service of the tenant becomes its selector and its target port, which are read from the
//! cache when the policy is built.

pub mod destination;
pub mod egress;
pub mod policies;

#[cfg(test)]
mod evaluate;
#[cfg(test)]
mod tests;
