//! The name that this program was started by.

use std::path::PathBuf;

/// The name that this program was started by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Invocation {
    /// `bloomery`: commands for both work on this machine by default.
    Standalone,
    /// `kubectl-bloomery`, a plugin of kubectl: commands for both work on the cluster by default.
    KubectlPlugin,
}

impl Invocation {
    /// The invocation of this process. kubectl starts the program as `kubectl-bloomery`.
    pub fn of_process() -> Self {
        let program = std::env::args_os().next().map(PathBuf::from);
        let is_plugin = program.is_some_and(|path| path.file_name().is_some_and(|name| name == "kubectl-bloomery"));
        if is_plugin { Self::KubectlPlugin } else { Self::Standalone }
    }

    /// The name of the program.
    pub fn program(self) -> &'static str {
        match self {
            Self::Standalone => "bloomery",
            Self::KubectlPlugin => "kubectl-bloomery",
        }
    }

    /// The command that people type.
    pub fn command(self) -> &'static str {
        match self {
            Self::Standalone => "bloomery",
            Self::KubectlPlugin => "kubectl bloomery",
        }
    }
}
