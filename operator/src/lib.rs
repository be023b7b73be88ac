//! The operator: provisions Skills, runs Jobs, takes reports.
//!
//! `main.rs` wires; every controller has the shape `fetch -> validate -> build -> apply -> status`, of which
//! validate, build and the computing of status are pure. What all of them share is in [`context`].

pub mod apply;
pub mod approval;
pub mod caches;
pub mod context;
pub mod controller;
pub mod error;
pub mod events;
pub mod health;
pub mod job;
pub mod leader;
pub mod listing;
pub mod logs;
pub mod metrics;
pub mod model;
pub mod owned;
pub mod report;
pub mod settings;
pub mod skill;
pub mod status;
pub mod wiring;

pub use context::Context;
pub use error::Error;
