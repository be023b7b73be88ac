//! Test doubles and fixtures that the tests of several crates share: an API server; a scripted model; an MCP server whose
//! tools have effects, and the ledger that counts these effects; Skills and conversations for them; and the suite of
//! conversations that end the same on a cluster and without one.
//!
//! Each server is a library that starts in-process, so that tests speak real HTTP to it. The crate `bloomery-e2e` has a
//! binary for the image of each. No crate that ships depends on this one; their tests do.

#[expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "it is part of tests, which fail by panicking; and indexing a JSON value does not panic"
)]
pub mod api_server;
pub mod http;
#[expect(clippy::needless_pass_by_value, clippy::panic, reason = "it fails as tests do, and is given literals")]
pub mod json;
pub mod ledger;
#[expect(clippy::expect_used, clippy::missing_panics_doc, reason = "it is part of tests, which fail by panicking")]
pub mod local_server;
pub mod logging;
pub mod model_server;
pub mod orders;
#[expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "it is part of tests, which fail by panicking; and indexing a JSON value does not panic"
)]
pub mod recording_model;
#[expect(
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::unwrap_used,
    reason = "it is part of tests, which fail by panicking"
)]
pub mod report_server;
#[expect(
    clippy::expect_used,
    clippy::missing_panics_doc,
    clippy::needless_pass_by_value,
    clippy::panic,
    reason = "it is part of tests, which fail by panicking; a conversation that a test writes down reads better without `&`"
)]
pub mod script;
pub mod serving;
#[expect(clippy::expect_used, clippy::missing_panics_doc, reason = "it is part of tests, which fail by panicking")]
pub mod shop;
pub mod skills;
#[expect(clippy::expect_used, clippy::panic, reason = "it is part of tests, which fail by panicking")]
pub mod suite;
#[expect(clippy::missing_panics_doc, clippy::unwrap_used, reason = "it is part of tests, which fail by panicking")]
pub mod tls;
#[expect(clippy::missing_panics_doc, clippy::unwrap_used, reason = "it is part of tests, which fail by panicking")]
pub mod twelve_steps;
