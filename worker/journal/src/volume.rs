//! Whether a volume can keep a log from forking.

use super::Error;
use super::files::{Files, remove_if_there};
use std::io;
use std::path::Path;

/// Tries what the log stands on: exclusive creation and exclusive hard links. `writer` makes the names of the
/// probe unique to this worker.
///
/// # Errors
/// What the volume lacks, or why that cannot be found out.
pub fn check(files: &impl Files, dir: &Path, writer: &str) -> Result<(), Error> {
    let probe = dir.join(format!(".probe-{writer}"));
    let second = dir.join(format!(".probe-{writer}-link"));
    let clear = || {
        remove_if_there(files, &probe)
            .and_then(|()| remove_if_there(files, &second))
            .map_err(|error| Error::of("remove a probe", &probe, error))
    };
    clear()?;
    if let Err(error) = files.create(&probe, b"probe\n") {
        // The name may be there, where there is no room for what it names.
        let _ = clear();
        return Err(Error::of("create a file in", dir, error));
    }
    let unsupported = |what, detail| Error::Unsupported { dir: dir.to_owned(), what, detail };
    let failed = |what, error: io::Error| {
        if is_passing(&error) {
            // It says nothing of what the volume can do, only of how it is now.
            Error::of("try the volume at", dir, error)
        } else {
            unsupported(what, error.to_string())
        }
    };
    let excluded = |what, result: io::Result<()>| match result {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(failed(what, error)),
        Ok(()) => Err(unsupported(what, "a name was given twice".to_owned())),
    };
    let checked = excluded("exclusive creation of files", files.create(&probe, b"again\n"))
        .and_then(|()| files.link(&probe, &second).map_err(|error| failed("hard links", error)))
        .and_then(|()| excluded("exclusive hard links", files.link(&probe, &second)));
    clear()?;
    checked
}

/// Whether an error is of the moment. `PermissionDenied` is not: it is what a file system without hard links says.
fn is_passing(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, ReadOnlyFilesystem, StaleNetworkFileHandle, StorageFull, TimedOut};
    matches!(error.kind(), QuotaExceeded | ReadOnlyFilesystem | StaleNetworkFileHandle | StorageFull | TimedOut)
}
