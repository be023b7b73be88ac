//! A key out of the environment, where the worker can read it as a file and nobody else can.
//!
//! The worker reads keys from files, anew for each request. A file in memory without a name is one that nothing else on
//! this machine sees, that no child process inherits, and that is gone with the process.

use bloomery_crds::run::KeyFile;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::AsRawFd;

/// Whether a key is one line of text: no header takes another, and a model would be waited for in vain.
pub fn is_one_line(key: &str) -> bool {
    !key.trim().contains(char::is_control)
}

/// A key in memory, as long as this lives.
#[derive(Debug)]
pub struct MemoryKey {
    file: File,
    variable: String,
}

impl MemoryKey {
    /// Keeps the value of a variable of the environment.
    ///
    /// # Errors
    /// If the system has no files in memory.
    pub fn new(variable: &str, value: &str) -> io::Result<Self> {
        let mut file = File::from(memfd_create("bloomery-key", MemfdFlags::CLOEXEC)?);
        file.write_all(value.as_bytes())?;
        Ok(Self { file, variable: variable.to_owned() })
    }

    /// Whether it is the value of a variable.
    pub fn is_of(&self, variable: &str) -> bool {
        self.variable == variable
    }

    /// The key as the worker reads it.
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
