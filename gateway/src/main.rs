//! The entry point of the gateway on a cluster.

use bloomery_gateway::settings::Settings;
use bloomery_gateway::{logs, server};
use clap::Parser;
use std::process::ExitCode;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let settings = Settings::parse();
    logs::init(settings.log_filter());
    match server::run(settings).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "the gateway failed");
            ExitCode::FAILURE
        }
    }
}
