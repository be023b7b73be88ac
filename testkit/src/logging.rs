//! The log of the servers on stderr.

use clap::{Args, ValueEnum};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

/// The form of a log line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// One JSON object a line, for machines.
    Json,
    /// Text, for people.
    #[default]
    Plain,
}

/// The flags about logs that every server takes.
#[derive(Args, Clone, Debug)]
pub struct Options {
    /// Form of the log lines on stderr
    #[arg(long, env = "LOG_FORMAT", value_enum, default_value_t)]
    log_format: Format,
    /// Filter of the log: a level, or levels by module
    #[arg(long, env = "LOG_FILTER", default_value = "info,rmcp=warn")]
    log_filter: String,
}

impl Options {
    /// Starts logging to stderr for the whole process. Call it once, in `main`.
    ///
    /// # Errors
    /// The filter is invalid.
    pub fn start(&self) -> Result<(), ParseError> {
        let filter = EnvFilter::builder().parse(&self.log_filter)?;
        let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
        match self.log_format {
            Format::Json => lines.json().init(),
            Format::Plain => lines.with_ansi(false).init(),
        }
        Ok(())
    }
}
