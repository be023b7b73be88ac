//! The command line and the environment of a server that is a local program.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Receives each line that a program writes to its standard error, redacted. A line may hold control characters.
pub type StderrListener = Arc<dyn Fn(&str) + Send + Sync>;

/// A server that is a program of this machine.
#[derive(Clone)]
pub struct Program {
    /// The program and its arguments. No shell interprets them.
    pub argv: Vec<String>,
    /// The whole environment of the program. The program inherits no variable from the worker, whose environment may hold keys.
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
