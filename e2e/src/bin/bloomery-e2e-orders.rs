//! The MCP server of a shop.

use std::process::ExitCode;
use std::time::Duration;

use bloomery_testkit::{logging, orders, serving};
use clap::Parser;

/// Serves a shop's orders as MCP tools, over streamable HTTP at /mcp.
///
/// Tools: `verify_identity`, `check_eligibility`, `track_order`, and `process_refund`, which records
/// its effect in the ledger. Orders: can be refunded; B-, C- and TERMS- cannot, and the
/// reason for TERMS- is very long. The answer to a refund of HOLD- waits for the ledger's release.
/// Tracking NEWS- changes the description of a tool. The result for ENDLESS-1 has 1 GiB, and NOISE-1
/// makes the server write 512 MiB of logs. GET /healthz.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    listen: serving::Listen,
    /// Base URL of the ledger; without it, the server refuses refunds
    #[arg(long, env = "LEDGER_URL")]
    ledger_url: Option<String>,
    /// Tenant that the ledger records with each effect
    #[arg(long, env = "TENANT")]
    tenant: Option<String>,
    /// Accepted values of the Host header, with or without a port; all, if there are none
    #[arg(long, env = "ALLOWED_HOSTS", value_delimiter = ',')]
    allowed_hosts: Vec<String>,
    /// Seconds before the server listens
    #[arg(long, env = "START_AFTER", default_value_t = 0)]
    start_after: u64,
    /// Accepts connections, and never answers a request to /mcp
    #[arg(long, env = "SILENT")]
    silent: bool,
    #[command(flatten)]
    logging: logging::Options,
}

#[tokio::main]
async fn main() -> ExitCode {
    serving::exit_code(run(Arguments::parse()).await)
}

async fn run(arguments: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let Arguments { listen, ledger_url: ledger, tenant, allowed_hosts, start_after, silent, logging } = arguments;
    logging.start()?;
    tokio::time::sleep(Duration::from_secs(start_after)).await;
    let running = orders::start(listen.addr(), orders::Options { ledger, tenant, allowed_hosts, silent }).await?;
    Ok(running.until_terminated().await?)
}
