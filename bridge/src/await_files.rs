//! Waits for the files of secrets, before the MCP server that needs them starts.

use crate::stop::{Stopped, log};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The interval between two looks. The kubelet updates the files about once a minute.
const INTERVAL: Duration = Duration::from_secs(1);

/// Waits until all files below `dir` exist and are not empty, or until the pod stops. Logs once which are missing.
pub(crate) async fn await_files(dir: &Path, files: &[PathBuf], stopped: Stopped) {
    let mut logged = Vec::new();
    loop {
        let missing = missing(dir, files);
        if missing.is_empty() {
            return;
        }
        if missing != logged {
            log(&format!("waiting for {}", missing.join(", ")));
            logged = missing;
        }
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = stopped.clone() => return,
        }
    }
}

/// Returns the files that do not exist or are empty.
fn missing(dir: &Path, files: &[PathBuf]) -> Vec<String> {
    let has_value = |file: &PathBuf| std::fs::metadata(dir.join(file)).is_ok_and(|found| found.len() > 0);
    files.iter().filter(|file| !has_value(file)).map(|file| file.display().to_string()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stop;

    #[tokio::test]
    async fn the_wait_is_over_when_every_file_has_a_value() {
        let dir = tempfile::tempdir().unwrap();
        let files = [PathBuf::from("db/url"), PathBuf::from("token")];
        std::fs::create_dir(dir.path().join("db")).unwrap();
        std::fs::write(dir.path().join("token"), "").unwrap();
        std::fs::write(dir.path().join("db/url"), "postgres://db").unwrap();
        assert_eq!(missing(dir.path(), &files), ["token"]);
        std::fs::write(dir.path().join("token"), "secret").unwrap();
        await_files(dir.path(), &files, stop::requested()).await;
    }
}
