//! The scripted model.

use std::path::PathBuf;
use std::process::ExitCode;

use bloomery_testkit::model_server::{Key, ModelServer};
use bloomery_testkit::{logging, serving};
use clap::Parser;

/// Answers from a script, and checks every request.
///
/// Implements OpenAI's protocol (POST /v1/chat/completions) and Anthropic's (POST /v1/messages), streaming or not, and
/// GET /v1/models of both. The script is read again when its file changes. For tests: GET /control/violations,
/// GET /control/requests, GET /control/held, POST /control/release/<hold>. GET /healthz.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    #[command(flatten)]
    listen: serving::Listen,
    /// YAML file of the script
    #[arg(long, env = "MODEL_SCRIPT")]
    script: PathBuf,
    /// File of the key that clients must send; without it, no key is required
    #[arg(long, env = "MODEL_API_KEY_FILE")]
    api_key_file: Option<PathBuf>,
    #[command(flatten)]
    logging: logging::Options,
}

#[tokio::main]
async fn main() -> ExitCode {
    serving::exit_code(run(Arguments::parse()).await)
}

async fn run(arguments: Arguments) -> Result<(), Box<dyn std::error::Error>> {
    arguments.logging.start()?;
    let mut server = ModelServer::from_file(&arguments.script)?;
    if let Some(path) = arguments.api_key_file {
        server = server.with_key(Key::File(path));
    }
    let running = server.start(arguments.listen.addr()).await?;
    Ok(running.until_terminated().await?)
}
