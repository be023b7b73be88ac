//! The report endpoint: how workers tell of their Jobs, over TLS with a CA of ours.
//!
//! Every replica serves it. A report is judged by its token and by what is recorded of its Job ([`auth`]), and
//! merged into the status by a pure function ([`merge`]).

pub mod auth;
pub mod ca;
mod count;
mod directives;
pub mod judge;
pub mod merge;
pub mod refusal;
pub mod server;
pub mod service;
mod tls;
mod trust;

pub use server::serve;
pub use trust::Trust;
