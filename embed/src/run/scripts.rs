//! The scripts of a Skill on this machine. They run as the user of this process, without the container that a cluster gives them, so
//! only `options.allow_scripts` allows them. `bloomery-bridge` runs them, as on a cluster.

use crate::error::Error;
use crate::local::writer::unique_writer;
use bloomery_crds::run::Revision;
use bloomery_crds::scripts;
use bloomery_crds::v1alpha1::SkillSpec;
use bloomery_mcp::{Client, Program, StderrListener};
use bloomery_redact::Redactor;
use std::env;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The program that runs scripts.
const BRIDGE: &str = "bloomery-bridge";

/// The variables that the program gets. It passes no other ones to scripts.
const VARIABLES: [&str; 2] = ["LANG", "PATH"];

/// The scripts of a Skill, as files for one run. Dropping the value removes them.
#[derive(Debug)]
pub struct LocalScripts {
    dir: PathBuf,
    bridge: PathBuf,
    timeout_seconds: u64,
}

impl LocalScripts {
    /// Writes the scripts of a Skill to a temporary directory that only this user can read. Returns `None` if the Skill has none, or the
    /// options do not allow them (`is_allowed`).
    ///
    /// # Errors
    /// If the files cannot be written, or the program that runs scripts is not installed.
    pub fn write(spec: &SkillSpec, is_allowed: bool) -> Result<Option<Self>, Error> {
        let Some(scripts) = spec.scripts.as_ref().filter(|_| is_allowed) else { return Ok(None) };
        let own = env::current_exe().ok();
        let path = env::var_os("PATH").unwrap_or_default();
        let bridge = find_bridge(own.as_deref().and_then(Path::parent), &path).ok_or_else(|| {
            Error::invalid(format!(
                "`options.allow_scripts`: the program {BRIDGE}, which runs the scripts of a Skill, is neither beside this program nor in PATH: \
                 build it with `cargo build --package bloomery-bridge`, or leave out `options.allow_scripts`"
            ))
        })?;
        let dir = env::temp_dir().join(format!("bloomery-scripts-{}", unique_writer()));
        let timeout_seconds = scripts::timeout_seconds(scripts);
        let local = Self { dir, bridge, timeout_seconds };
        local.write_files(&scripts.files).map_err(|error| {
            Error::failed(format!("the scripts of the Skill cannot be written to {}: {error}", local.dir.display()))
        })?;
        Ok(Some(local))
    }

    fn write_files<'a>(&self, files: impl IntoIterator<Item = (&'a String, &'a String)>) -> io::Result<()> {
        let mut private = DirBuilder::new();
        private.mode(0o700);
        for dir in [&self.dir, &self.files(), &self.work_dir()] {
            private.create(dir)?;
        }
        for (name, text) in files {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(0o500);
            options.open(self.files().join(name))?.write_all(text.as_bytes())?;
        }
        Ok(())
    }

    /// Creates the client of the scripts.
    pub fn client(&self, listener: StderrListener, redactor: Redactor) -> Client {
        let argv = [
            self.bridge.display().to_string(),
            "scripts".to_owned(),
            format!("--dir={}", self.files().display()),
            format!("--work-dir={}", self.work_dir().display()),
            format!("--timeout-seconds={}", self.timeout_seconds),
        ];
        let env = VARIABLES.into_iter().filter_map(|name| Some((name.to_owned(), env::var(name).ok()?))).collect();
        Client::program(Program { argv: argv.to_vec(), env, listener }, redactor)
    }

    fn files(&self) -> PathBuf {
        self.dir.join("scripts")
    }

    fn work_dir(&self) -> PathBuf {
        self.dir.join("work")
    }
}

impl Drop for LocalScripts {
    fn drop(&mut self) {
        // Files that cannot be removed stay in the directory for temporary files.
        let _ = fs::remove_dir_all(&self.dir);
    }
}

/// Returns the program that runs scripts: in this directory, or else in `path`.
fn find_bridge(own: Option<&Path>, path: &OsStr) -> Option<PathBuf> {
    let dirs = own.map(Path::to_owned).into_iter().chain(env::split_paths(path));
    dirs.map(|dir| dir.join(BRIDGE)).find(|program| program.is_file())
}

/// Returns a note if a Skill has scripts, but the options do not allow them.
pub fn missing_note(revision: &Revision, is_allowed: bool) -> Option<String> {
    let tools: Vec<String> = scripts::tools_of(&revision.spec).into_keys().collect();
    (!is_allowed && !tools.is_empty()).then(|| {
        format!(
            "the Skill {} runs without its scripts {}: `options.allow_scripts` runs them on this machine, as your user",
            revision.skill,
            tools.join(", ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::iter;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_files_are_private_and_removed() {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("run");
        let local = LocalScripts { dir: dir.clone(), bridge: PathBuf::new(), timeout_seconds: 1 };
        local.write_files(iter::once((&"check.sh".to_owned(), &"exit 0".to_owned()))).unwrap();
        let mode = |path: PathBuf| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(dir.clone()), mode(dir.join("scripts/check.sh"))), (0o700, 0o500));
        drop(local);
        assert!(!dir.exists());
    }

    #[test]
    fn the_program_beside_this_one_comes_before_those_in_path() {
        let (own, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let find = || find_bridge(Some(own.path()), other.path().as_os_str());
        assert_eq!(find(), None);
        fs::write(other.path().join(BRIDGE), "").unwrap();
        assert_eq!(find(), Some(other.path().join(BRIDGE)));
        fs::write(own.path().join(BRIDGE), "").unwrap();
        assert_eq!(find(), Some(own.path().join(BRIDGE)));
    }
}
