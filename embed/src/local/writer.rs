//! Unique names for this process, its files and its Jobs.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};

/// Returns a name for this process as the writer of files and log segments. The name is unique, even among several machines.
pub fn unique_writer() -> String {
    format!("local-{}-{}", std::process::id(), random_hex())
}

/// Returns 16 random hexadecimal digits. They make a name unique, but are not secret.
pub fn random_hex() -> String {
    format!("{:016x}", RandomState::new().build_hasher().finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_a_writer_is_unique_and_a_valid_file_name() {
        let (one, other) = (unique_writer(), unique_writer());
        assert_ne!(one, other);
        assert!(one.len() <= 64 && one.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-'), "{one}");
    }
}
