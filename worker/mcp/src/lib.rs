//! A client of MCP servers: the tools of a Skill, over streamable HTTP or the standard streams of a local program, with the
//! stateless protocol and with the older `initialize` handshake.
//!
//! A tool call may have a side effect. So [`Client::call`] sends it at most once, and returns what is proven about it:
//!
//! - [`CallOutcome::Completed`]: the server has answered.
//! - [`CallOutcome::Failed`]: the server has answered that the call failed, or no byte of it was sent.
//! - [`CallOutcome::Indeterminate`]: neither can be proven.
//!
//! The proof is recorded where bytes are sent (the module `delivery`), and never derived from error messages.

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
mod outcome;
mod program;
mod repair;
mod result_text;
mod session;
mod stdio;
mod transport_error;

pub use cache::ToolListCache;
pub use client::{CALL_TIMEOUT, Client, MAX_CALL_TIMEOUT};
pub use error::Error;
pub use limits::MAX_BODY_BYTES;
pub use outcome::{CallOutcome, CallResult, not_repeatable};
pub use program::{Program, StderrListener};
