//! Reads the kubeconfigs that kubectl reads, up to a maximum size.

use crate::source;
use kube::config::{Kubeconfig, KubeconfigError};
use std::env;
use std::io;
use std::path::{Path, PathBuf};

/// The maximum size of a kubeconfig, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Reads the named kubeconfig. Without a name, reads the files that `KUBECONFIG` lists, or else the file in the home directory.
///
/// # Errors
/// If a file cannot be read, or is invalid.
pub(super) fn read(named: Option<&Path>) -> Result<Kubeconfig, KubeconfigError> {
    let files = match named {
        Some(file) => vec![file.to_owned()],
        None => default_files(),
    };
    if files.is_empty() {
        return Err(KubeconfigError::FindPath);
    }
    files.iter().try_fold(Kubeconfig::default(), |merged, file| merged.merge(read_file(file)?))
}

/// Returns the files that kubectl reads by default.
fn default_files() -> Vec<PathBuf> {
    let listed = env::var_os("KUBECONFIG").unwrap_or_default();
    let listed: Vec<PathBuf> = env::split_paths(&listed).filter(|file| !file.as_os_str().is_empty()).collect();
    let at_home = || env::home_dir().map(|home| home.join(".kube/config"));
    if listed.is_empty() { at_home().into_iter().collect() } else { listed }
}

/// Reads one file.
fn read_file(file: &Path) -> Result<Kubeconfig, KubeconfigError> {
    let unreadable = |error| KubeconfigError::ReadConfig(error, file.to_owned());
    if source::is_file_descriptor(file) {
        // A pipe has no size, and can be read only once.
        let text = source::read_bounded(file, MAX_BYTES).map_err(unreadable)?;
        let text = String::from_utf8(text).map_err(|error| unreadable(io::Error::other(error)))?;
        return Kubeconfig::from_yaml(&text);
    }
    let size = source::open(file).and_then(|opened| opened.metadata()).map_err(unreadable)?.len();
    if size > MAX_BYTES {
        return Err(unreadable(io::Error::other(format!("it is larger than {MAX_BYTES} bytes"))));
    }
    // This function resolves the paths in the file relative to the directory of the file.
    Kubeconfig::read_from(file)
}
