//! The common parts of the worker's HTTP clients: connections, allowed addresses, bounded bodies, credentials, retry delays, progress.
//!
//! [`client`] builds a [`reqwest::Client`] that follows no redirect, uses no proxy of the environment and sends nothing twice.
//! [`address`] restricts which addresses it connects to, [`body`] reads responses within bounds, and [`credential`] and [`certificates`]
//! read Secrets.

pub mod address;
pub mod body;
pub mod certificates;
pub mod credential;
pub mod progress;

mod backoff;
mod client;
mod pauses;

pub use backoff::Backoff;
pub use client::{
    CONNECT_TIMEOUT, ClientOptions, Error, IDLE_TIMEOUT, check_address, client, install_tls_provider, is_https, origin,
    root_cause,
};
pub use pauses::Pauses;
