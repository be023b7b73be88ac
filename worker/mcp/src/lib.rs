//! A client of MCP servers, which provide the tools of a Skill. A server is reached over streamable HTTP, or over the standard
//! streams of a local program.
//!
//! MCP has two eras, and the client supports both. Since protocol version 2026-07-28 (the newer era), requests are independent of each
//! other. Before that version (the older era), a session begins with an `initialize` handshake.
//!
//! A tool call may have a side effect. Therefore [`Client::call`] sends it at most once, and its outcome states only what is proven:
//!
//! - [`CallOutcome::Completed`]: the server answered.
//! - [`CallOutcome::Failed`]: the server answered that the call failed, or no byte of the call was sent.
//! - [`CallOutcome::Indeterminate`]: neither is proven.
//!
//! The module `delivery` records the proof where bytes are sent. Error messages are never used as proof.

mod access;
mod binary_text;
mod cache;
mod call;
mod client;
mod delivery;
mod error;
mod http_transport;
mod known_tools;
mod limits;
mod listing;
mod notification;
mod older_transport;
mod outcome;
mod oversized;
mod program;
mod repair;
mod result_text;
mod server_tokens;
mod session;
mod stderr_log;
mod stdio;
mod structured;
mod transport_error;

pub use cache::ToolListCache;
pub use client::{CALL_TIMEOUT, Client, MAX_CALL_TIMEOUT};
pub use error::Error;
pub use limits::MAX_BODY_BYTES;
pub use outcome::{CallOutcome, CallResult, describe_lost_call};
pub use program::{Program, StderrListener};
pub use server_tokens::ServerTokens;
pub use stdio::StderrEnd;
