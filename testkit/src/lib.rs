//! Test doubles and fixtures that the tests of several crates share. No crate that ships depends on this one.
//!
//! Look here before you write a test double. Each server starts in the process of the test and serves real HTTP. The crate
//! `bloomery-e2e` builds images of three of them for the cluster.
//!
//! | Double | Module | Users |
//! |---|---|---|
//! | Kubernetes API server in memory | [`api_server`] | `operator`, `cli`, `embed` |
//! | model that answers scripts, and checks the protocols of OpenAI and Anthropic | [`model_server`] | `cli`, `e2e`, `embed`, `gateway` |
//! | model that records whole requests and can be busy or silent | [`recording_model`] | `worker` |
//! | MCP server of a shop, whose refunds are effects | [`orders`] | `cli`, `e2e` |
//! | ledger that counts effects durably | [`ledger`] | `cli`, `e2e` |
//! | the MCP server and its ledger together | [`shop`] | `cli` |
//! | the operator's report endpoint, over TLS | [`report_server`] | `worker` |
//! | any router on a free port | [`local_server`], [`serving`] if the test stops it, [`tls`] for TLS | `e2e`, `worker` |
//!
//! | Fixture | Module |
//! |---|---|
//! | conversations for the scripted model, written in Rust | [`script`] |
//! | Skills of a shop that refunds orders | [`skills`] |
//! | the Skill `greeter`, and conversations with it | [`greeter`] |
//! | the distance between the cases of a long test | [`sample`] |
//! | conversations that end the same way on a cluster and in local mode | [`suite`] |
//! | a conversation of twelve answers, to interrupt anywhere | [`twelve_steps`] |
//! | Jobs and Approvals of a cluster | [`objects`] |
//! | typed values of JSON literals | [`json`] |

#[expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "it is part of tests, which fail by panicking; and indexing a JSON value does not panic"
)]
pub mod api_server;
pub mod greeter;
pub mod http;
#[expect(clippy::needless_pass_by_value, clippy::panic, reason = "it fails as tests do, and is given literals")]
pub mod json;
pub mod ledger;
#[expect(clippy::expect_used, clippy::missing_panics_doc, reason = "it is part of tests, which fail by panicking")]
pub mod local_server;
pub mod logging;
pub mod model_server;
#[expect(clippy::missing_panics_doc, clippy::unwrap_used, reason = "it is part of tests, which fail by panicking")]
pub mod objects;
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
pub mod sample;
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
