//! The report endpoint: how workers tell of their Jobs, over TLS with a CA of ours.
//!
//! Every replica serves it. A report is judged by its token and by what is recorded of its Job ([`auth`]), and
//! merged into the status by a pure function ([`merge`]).

pub mod auth;
pub mod ca;
mod ca_bundle;
mod directives;
mod gate_metrics;
pub mod judge;
pub mod merge;
pub mod refusal;
pub mod server;
pub mod service;
mod tls;

pub use ca_bundle::CaBundle;
pub use server::serve;
