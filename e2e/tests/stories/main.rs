//! Black-box stories: people, the operator and its workers on a real cluster.
//!
//! One binary, so that it links once; one module for each subject. `make e2e` runs all stories, `make e2e FILTER=<name>`
//! those with this name, and `make e2e-core` those that `e2e/core-stories` lists, which CI runs. `cargo test -p bloomery-e2e --test stories <name>` also builds the images and
//! installs the operator if necessary. Each story has its own namespace, so all of them can run at the same time, except for those in a
//! module `alone`.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::large_futures,
    clippy::panic,
    reason = "these are tests: a story is one future on its own thread, and fails by panicking"
)]

mod admission;
mod approvals;
mod attacks;
mod budget;
mod cancel;
mod children;
mod clock;
mod continues;
mod conversations;
mod crds;
mod deciding;
mod deletion;
mod disrupted;
mod endpoints;
mod environment;
mod faults;
mod gates;
mod gateway;
mod gateway_faults;
mod gateway_proxy;
mod healing;
mod kstatus;
mod kubectl;
mod left_behind;
mod limits;
mod makespan;
mod mcp_servers;
mod memory;
mod memory_limits;
mod migration;
mod modes;
mod network;
mod numbers;
mod operator_policy;
mod parked;
mod policies;
mod probes;
mod questions;
mod queue;
mod reclaim;
mod refund;
mod reports;
mod repositories;
mod resources;
mod revisions;
mod rights;
mod roles;
mod run_keys;
mod scale;
mod scripts;
mod sidecars;
mod stages;
mod starts;
mod takeover;
mod templates;
mod tenant_limits;
mod tenants;
mod texts;
mod upgrade;
mod validation;
mod versions;
mod webhooks;
