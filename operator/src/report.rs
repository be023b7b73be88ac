//! The report endpoint: receives the reports of workers over TLS. The operator runs its own CA for it.
//!
//! Every replica serves it. A report is authenticated by its token ([`auth`]), checked against the recorded attempt of
//! its Job ([`judge`]), and merged into the status by a pure function ([`merge`]).

pub mod auth;
pub mod ca;
mod ca_bundle;
mod connections;
mod directives;
mod features;
mod hold;
pub mod judge;
mod memory;
pub mod merge;
mod open_files;
pub mod probe;
pub mod refusal;
mod review_limit;
pub mod server;
pub mod service;
mod skills;
mod tls;
mod token_keys;
mod turns;

pub use ca_bundle::CaBundle;
pub use server::serve;

/// The maximum number of tries to write a status that other writers change at the same time.
const MAX_WRITE_TRIES: u32 = 5;
