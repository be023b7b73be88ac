//! How a server that is a local program is started.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Receives what a program writes to its standard error, line by line, redacted. A line may hold control characters.
pub type StderrListener = Arc<dyn Fn(&str) + Send + Sync>;

/// A server that is a program of this machine.
#[derive(Clone)]
pub struct Program {
    /// The program and its arguments. They are not interpreted by a shell.
    pub argv: Vec<String>,
    /// The whole environment of the program. It inherits nothing, because the worker's environment may hold keys.
    pub env: BTreeMap<String, String>,
    /// Receives the standard error of the program.
    pub listener: StderrListener,
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The environment may hold secrets.
        f.debug_struct("Program").field("argv", &self.argv).finish_non_exhaustive()
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The arguments may hold secrets.
        write!(f, "`{}`", self.argv.first().map_or("", String::as_str))
    }
}
