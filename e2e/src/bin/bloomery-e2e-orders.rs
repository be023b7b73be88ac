//! The MCP server of a shop.

use std::process::ExitCode;

use bloomery_testkit::{logging, orders, serving};
use clap::Parser;

/// Serves a shop's orders as MCP tools, over streamable HTTP at /mcp.
///
/// Tools: `verify_identity`, `check_eligibility`, `track_order`, and `process_refund`, whose effect
/// goes to the ledger. Orders: can be refunded, B- and C- cannot; the answer to a
/// refund of HOLD-1 to HOLD-999 waits for the ledger's release. Of TERMS-1 to TERMS-999 there is much
/// to read, and once NEWS-1 to NEWS-999 was tracked, a tool has another description. GET /healthz.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    listen: serving::Listen,
    /// Base URL of the ledger; without it nothing can be refunded
    #[arg(long, env = "LEDGER_URL")]
    ledger_url: Option<String>,
    /// Whose orders these are, told to the ledger
    #[arg(long, env = "TENANT")]
    tenant: Option<String>,
    /// Values of the Host header that are accepted, with or without a port; none: every one
    #[arg(long, env = "ALLOWED_HOSTS", value_delimiter = ',')]
    allowed_hosts: Vec<String>,
    #[command(flatten)]
    logging: logging::Options,
}

#[tokio::main]
async fn main() -> ExitCode {
    serving::exit_code(run(Arguments::parse()).await)
}

async fn run(arguments: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    let Arguments { listen, ledger_url: ledger, tenant, allowed_hosts, logging } = arguments;
    logging.start()?;
    let running = orders::start(listen.addr(), orders::Options { ledger, tenant, allowed_hosts }).await?;
    Ok(running.until_terminated().await?)
}
