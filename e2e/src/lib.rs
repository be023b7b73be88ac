//! The servers that Bloomery's black-box stories and the demo run in the cluster: a scripted
//! model, an MCP server with real effects, and the ledger that counts those effects.
//!
//! Each server is a library that starts in-process, so that its tests speak real HTTP to it, and
//! a thin binary for its image. Nothing of Bloomery itself depends on this crate.

#[expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::needless_pass_by_value,
    clippy::panic,
    reason = "it is part of tests: it fails as they do, and what a story writes down reads better without `&`"
)]
pub mod harness;
pub mod http;
pub mod ledger;
pub mod logging;
pub mod model_server;
pub mod orders;
pub mod serving;
#[expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "it is part of tests, as `harness` is"
)]
pub mod suite;
