//! The ledger counts the effects of tool calls durably. A client can also wait at a hold until a test releases an order.
//!
//! Tests that each effect happens once count it here: an effect happened exactly as often as the ledger has recorded it,
//! whatever a worker, an MCP server or the operator reports.

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

/// Starts a ledger on the journal in `dir`.
///
/// # Errors
/// The journal in `dir` cannot be read or written, or has invalid entries, or the server cannot listen on `addr`.
pub async fn start(addr: SocketAddr, dir: &Path) -> io::Result<Running> {
    let (journal, entries) = journal::Journal::open(dir)?;
    let stop = CancellationToken::new();
    let router = routes::router(journal, book::Book::from_entries(entries), stop.clone());
    Running::start(addr, router, stop).await
}
