//! The ledger: counts the effects of tool calls, durably, and holds orders for tests.
//!
//! It is the witness of "each effect once": whatever a worker, an MCP server or the operator says,
//! an effect happened exactly as often as the ledger has it.

mod book;
mod entry;
mod journal;
mod routes;
#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::path::Path;

use tokio_util::sync::CancellationToken;

pub use self::book::{OrderSummary, Summary};
pub use self::entry::{Effect, Recorded};
pub use self::routes::{Effects, Hold};
use crate::serving::Running;

/// Starts a ledger on what `dir` holds.
///
/// # Errors
/// The journal in `dir` cannot be read, written or made sense of, or `addr` cannot be listened on.
pub async fn start(addr: SocketAddr, dir: &Path) -> io::Result<Running> {
    let (journal, entries) = journal::Journal::open(dir)?;
    let stop = CancellationToken::new();
    let router = routes::router(journal, book::Book::from_entries(entries), stop.clone());
    Running::start(addr, router, stop).await
}
