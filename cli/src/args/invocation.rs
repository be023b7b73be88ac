//! The name under which this program was started.

use std::path::PathBuf;

/// The name under which this program was started. It selects the default place of the commands `get` and `events`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invocation {
    /// `bloomery`: the default place is this machine.
    Standalone,
    /// `kubectl-bloomery`, a plugin of kubectl: the default place is the cluster.
    KubectlPlugin,
}

impl Invocation {
    /// Returns the invocation of this process. kubectl starts the program as `kubectl-bloomery`.
    pub fn of_process() -> Self {
        let program = std::env::args_os().next().map(PathBuf::from);
        let is_plugin = program.is_some_and(|path| path.file_name().is_some_and(|name| name == "kubectl-bloomery"));
        if is_plugin { Self::KubectlPlugin } else { Self::Standalone }
    }

    /// Returns the name of the program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Standalone => "bloomery",
            Self::KubectlPlugin => "kubectl-bloomery",
        }
    }

    /// Returns the command that people type.
    pub fn command(self) -> &'static str {
        match self {
            Self::Standalone => "bloomery",
            Self::KubectlPlugin => "kubectl bloomery",
        }
    }
}
