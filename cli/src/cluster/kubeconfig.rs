//! Reads kubeconfigs: the files that kubectl reads, of bounded size.

use crate::source;
use kube::config::{Kubeconfig, KubeconfigError};
use std::env;
use std::io;
use std::path::{Path, PathBuf};

/// The largest kubeconfig that is read, in bytes.
const MAX_BYTES: u64 = 16 << 20;

/// Reads the named kubeconfig; otherwise those in `KUBECONFIG`, or the one in the home directory.
///
/// # Errors
/// If one cannot be read, or is invalid.
pub(super) fn read(named: Option<&Path>) -> Result<Kubeconfig, KubeconfigError> {
    let files = match named {
        Some(file) => vec![file.to_owned()],
        None => usual(),
    };
    let mut files = files.iter().peekable();
    if files.peek().is_none() {
        return Err(KubeconfigError::FindPath);
    }
    files.try_fold(Kubeconfig::default(), |read, file| read.merge(of_file(file)?))
}

/// Returns the files that kubectl reads.
fn usual() -> Vec<PathBuf> {
    let listed = env::var_os("KUBECONFIG").unwrap_or_default();
    let listed: Vec<PathBuf> = env::split_paths(&listed).filter(|file| !file.as_os_str().is_empty()).collect();
    let at_home = || env::home_dir().map(|home| home.join(".kube/config"));
    if listed.is_empty() { at_home().into_iter().collect() } else { listed }
}

fn of_file(file: &Path) -> Result<Kubeconfig, KubeconfigError> {
    let unreadable = |error| KubeconfigError::ReadConfig(error, file.to_owned());
    if source::is_inherited(file) {
        let text = source::read_bounded(file, MAX_BYTES).map_err(unreadable)?;
        let text = String::from_utf8(text).map_err(|error| unreadable(io::Error::other(error)))?;
        return Kubeconfig::from_yaml(&text);
    }
    let bytes = source::open(file).and_then(|file| file.metadata()).map_err(unreadable)?.len();
    if bytes > MAX_BYTES {
        return Err(unreadable(io::Error::other(format!("it is larger than {MAX_BYTES} bytes"))));
    }
    // Resolves the paths in the file relative to it.
    Kubeconfig::read_from(file)
}
