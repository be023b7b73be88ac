//! The entry point of the operator: reads the settings and runs the parts.

use bloomery_operator::settings::Settings;
use bloomery_operator::wiring;
use clap::Parser;
use std::process::ExitCode;

#[tokio::main(worker_threads = 2)]
async fn main() -> ExitCode {
    let settings = match Settings::try_parse() {
        Ok(settings) => settings,
        // Help and version go to stdout, and are not errors.
        Err(help_or_version) if !help_or_version.use_stderr() => help_or_version.exit(),
        Err(error) => {
            eprintln!("bloomery-operator: {}", Settings::describe_error(&error));
            return ExitCode::from(2);
        }
    };
    bloomery_operator::logs::init(&settings.log_filter);
    match wiring::run(settings).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "the operator failed");
            ExitCode::FAILURE
        }
    }
}
