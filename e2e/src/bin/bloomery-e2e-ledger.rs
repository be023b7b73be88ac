//! The ledger that counts effects durably.

use std::path::PathBuf;
use std::process::ExitCode;

use bloomery_testkit::{ledger, logging, serving};
use clap::Parser;

/// Counts the effects of tool calls, durably.
///
/// POST /effects appends an effect to a journal under --dir, syncs it, and answers how often its
/// call key was seen. GET /effects lists the effects and GET /effects/summary counts them; ?tenant=
/// selects those of one tenant. GET /holds/<order> waits for POST /holds/<order>/release. GET /healthz.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    listen: serving::Listen,
    /// Directory of the journal; the server writes nowhere else
    #[arg(long, env = "LEDGER_DIR")]
    dir: PathBuf,
    #[command(flatten)]
    logging: logging::Options,
}

#[tokio::main]
async fn main() -> ExitCode {
    serving::exit_code(run(Arguments::parse()).await)
}

async fn run(arguments: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    arguments.logging.start()?;
    let ledger = ledger::start(arguments.listen.addr(), &arguments.dir).await?;
    Ok(ledger.until_terminated().await?)
}
