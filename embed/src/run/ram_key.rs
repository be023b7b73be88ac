//! An API key from the environment, in a file in RAM that only this process can read.
//!
//! The model client reads a key from its file again for each request. An anonymous file in RAM is invisible to other processes,
//! is not inherited by child processes, and disappears with this process.

use bloomery_crds::run::KeyFile;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;

/// Returns whether a key is one line of text. A key of several lines cannot be sent in a header.
pub fn is_one_line(key: &str) -> bool {
    !key.trim().contains(char::is_control)
}

/// A key in an anonymous file, which is readable as long as this value exists.
#[derive(Debug)]
pub struct RamKey {
    file: File,
    variable: String,
}

impl RamKey {
    /// Stores the value of a variable of the environment.
    ///
    /// # Errors
    /// If the system cannot create an anonymous file.
    pub fn new(variable: &str, value: &str) -> io::Result<Self> {
        let mut file = File::from(memfd_create("bloomery-key", MemfdFlags::CLOEXEC)?);
        file.write_all(value.as_bytes())?;
        Ok(Self { file, variable: variable.to_owned() })
    }

    /// Returns whether the key is the value of this variable.
    pub fn is_from(&self, variable: &str) -> bool {
        self.variable == variable
    }

    /// Returns the key in the form that the worker reads.
    pub fn key_file(&self) -> KeyFile {
        KeyFile {
            path: format!("/proc/self/fd/{}", self.file.as_raw_fd()),
            secret: "environment".to_owned(),
            key: self.variable.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::RamKey;

    #[test]
    fn a_key_can_be_read_repeatedly_until_it_is_dropped() {
        let key = RamKey::new("OPENAI_API_KEY", "sk-1").unwrap();
        let file = key.key_file();
        for _ in 0..2 {
            assert_eq!(std::fs::read_to_string(&file.path).unwrap(), "sk-1");
        }
        assert!(!format!("{key:?}").contains("sk-1"));
        drop(key);
        assert_ne!(std::fs::read_to_string(&file.path).ok().as_deref(), Some("sk-1"));
    }
}
