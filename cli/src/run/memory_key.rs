//! An API key from the environment, in a file that only this process can read.
//!
//! The worker reads keys from files, again for each request. An anonymous file in memory is invisible to other processes, is not
//! inherited by children, and is gone with the process.

use bloomery_crds::run::KeyFile;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;

/// Returns whether a key is one line of text. Headers accept nothing else.
pub fn is_one_line(key: &str) -> bool {
    !key.trim().contains(char::is_control)
}

/// A key in memory, readable as long as this value lives.
#[derive(Debug)]
pub struct MemoryKey {
    file: File,
    variable: String,
}

impl MemoryKey {
    /// Stores the value of a variable of the environment.
    ///
    /// # Errors
    /// If the system cannot create files in memory.
    pub fn new(variable: &str, value: &str) -> io::Result<Self> {
        let mut file = File::from(memfd_create("bloomery-key", MemfdFlags::CLOEXEC)?);
        file.write_all(value.as_bytes())?;
        Ok(Self { file, variable: variable.to_owned() })
    }

    /// Returns whether the key comes from a variable.
    pub fn is_of(&self, variable: &str) -> bool {
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
    use super::MemoryKey;

    #[test]
    fn a_key_is_read_again_and_again_and_gone_with_its_holder() {
        let held = MemoryKey::new("OPENAI_API_KEY", "sk-1").unwrap();
        let file = held.key_file();
        for _ in 0..2 {
            assert_eq!(std::fs::read_to_string(&file.path).unwrap(), "sk-1");
        }
        assert!(!format!("{held:?}").contains("sk-1"));
        drop(held);
        assert_ne!(std::fs::read_to_string(&file.path).ok().as_deref(), Some("sk-1"));
    }
}
