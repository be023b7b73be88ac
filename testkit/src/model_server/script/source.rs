//! The source of the script: a fixed script, or a file that may change.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::Script;

/// A script that may change while the server runs, as a mounted `ConfigMap` does.
#[derive(Debug)]
pub(in crate::model_server) struct Source {
    path: Option<PathBuf>,
    latest: Mutex<Version>,
}

#[derive(Debug)]
struct Version {
    text: String,
    script: Arc<Script>,
}

impl Source {
    pub(in crate::model_server) fn fixed(script: Script) -> Self {
        let version = Version { text: String::new(), script: Arc::new(script) };
        Self { path: None, latest: Mutex::new(version) }
    }

    pub(in crate::model_server) fn file(path: &Path) -> io::Result<Self> {
        let version = Version::read(path)?;
        Ok(Self { path: Some(path.to_owned()), latest: Mutex::new(version) })
    }

    /// Returns the latest version of the script.
    ///
    /// The file is read each time. It is small, and its modification time may stay the same when its content changes.
    ///
    /// # Errors
    /// The file cannot be read or is not a valid script. The server does not fall back to the older version, because a test
    /// has replaced it.
    pub(in crate::model_server) fn latest(&self) -> io::Result<Arc<Script>> {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(path) = &self.path {
            let text = read(path)?;
            if text != latest.text {
                *latest = Version::parse(path, text)?;
                tracing::info!(path = %path.display(), "script read again");
            }
        }
        Ok(Arc::clone(&latest.script))
    }
}

impl Version {
    fn read(path: &Path) -> io::Result<Self> {
        Self::parse(path, read(path)?)
    }

    fn parse(path: &Path, text: String) -> io::Result<Self> {
        let script = Script::from_yaml(&text)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {error}", path.display())))?;
        Ok(Self { text, script: Arc::new(script) })
    }
}

fn read(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}
