//! Black-box stories: people, the operator and its workers on a real cluster.
//!
//! One binary, so that it links once; one module for each subject. `make e2e` runs all of them, `make e2e
//! FILTER=<name>` some. `cargo test -p bloomery-e2e --test stories <name>` does too, and builds and installs
//! what is missing. Each story has a namespace of its own, so all of them may run at once.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::large_futures,
    clippy::panic,
    reason = "tests, and what they share: a story is one future on a thread of its own, and fails by panicking"
)]

mod approvals;
mod budget;
mod cancel;
mod clock;
mod continues;
mod conversations;
mod crds;
mod deciding;
mod deletion;
mod endpoints;
mod faults;
mod gates;
mod healing;
mod kubectl;
mod left_behind;
mod limits;
mod memory;
mod numbers;
mod parked;
mod questions;
mod refund;
mod reports;
mod resources;
mod revisions;
mod rights;
mod stages;
mod tenants;
mod upgrade;
