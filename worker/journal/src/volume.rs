//! Checks that a volume can keep a log from forking.

use super::Error;
use super::files::{Files, remove_if_there};
use std::io;
use std::path::Path;

/// Tries exclusive creation of files and exclusive hard links in `dir`. `writer` makes the names of the probe files unique to this
/// worker.
///
/// # Errors
/// If the volume lacks one of these features, or if they cannot be tried.
pub fn check(files: &impl Files, dir: &Path, writer: &str) -> Result<(), Error> {
    let probe = dir.join(format!(".probe-{writer}"));
    let second = dir.join(format!(".probe-{writer}-link"));
    let remove_probes = || {
        remove_if_there(files, &probe)
            .and_then(|()| remove_if_there(files, &second))
            .map_err(|error| Error::from_io("remove a probe", &probe, error))
    };
    remove_probes()?;
    if let Err(error) = files.create_unsynced(&probe, b"probe\n") {
        // On a full volume the file may exist without its content.
        let _ = remove_probes();
        return Err(Error::from_io("create a file in", dir, error));
    }
    let unsupported = |what, detail| Error::Unsupported { dir: dir.to_owned(), what, detail };
    let failed = |what, error: io::Error| {
        if may_be_temporary(&error) {
            // The error shows the volume's current state, not its features.
            Error::from_io("try the volume at", dir, error)
        } else {
            unsupported(what, error.to_string())
        }
    };
    let expect_exclusive = |what, result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed(what, error)),
        Ok(()) => Err(unsupported(what, "the same name was created twice".to_owned())),
    };
    let checked = expect_exclusive("exclusive creation of files", files.create_unsynced(&probe, b"again\n"))
        .and_then(|()| files.link(&probe, &second).map_err(|error| failed("hard links", error)))
        .and_then(|()| expect_exclusive("exclusive hard links", files.link(&probe, &second)));
    remove_probes()?;
    checked
}

/// Returns whether an error may be temporary. `PermissionDenied` does not count, because file systems without hard links return it.
fn may_be_temporary(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StaleNetworkFileHandle, StorageFull, TimedOut};
    matches!(error.kind(), QuotaExceeded | ReadOnlyFilesystem | StaleNetworkFileHandle | StorageFull | TimedOut)
}
