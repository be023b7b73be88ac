//! Where the script comes from, and its latest version.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use super::Script;

/// A script that may change under us, as a mounted `ConfigMap` does.
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

    /// Returns the script as it is now.
    ///
    /// The file is read each time: it is small, and a time stamp may stay the same where the
    /// content does not.
    ///
    /// # Errors
    /// The file is away or holds no script. An older version does not stand in for it: a test
    /// would be answered by what its author just replaced.
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
            .map_err(|why| io::Error::new(io::ErrorKind::InvalidData, format!("{}: {why}", path.display())))?;
        Ok(Self { text, script: Arc::new(script) })
    }
}

fn read(path: &Path) -> io::Result<String> {
    std::fs::read_to_string(path).map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", path.display())))
}
