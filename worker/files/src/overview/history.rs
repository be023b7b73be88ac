//! The last git operations. They are read from git's files, because running git would apply hooks and settings of an untrusted file
//! system.

use crate::resource_path::{ResourcePath, escape_controls};
use crate::root::Root;
use crate::secrets::{SecretWindow, read_at};
use std::io;

/// The limit on the operations listed.
const MAX_OPERATIONS: usize = 5;

/// The largest part that is read of a file, in bytes: its end.
const MAX_READ_BYTES: usize = 8 * 1024;

/// The limit on a message, in bytes.
const MAX_MESSAGE_BYTES: usize = 120;

/// Lists the branch and the last operations that moved `HEAD`, latest first. Returns `None` without a `.git` directory at the root.
pub(super) fn recent_operations(root: &Root) -> Option<String> {
    let head = read_end(root, ".git/HEAD").ok()?;
    let branch = head.trim().strip_prefix("ref: refs/heads/").map_or("no branch", str::trim);
    let mut text = format!("git, on {}:\n", truncate(&escape_controls(branch)));
    let log = read_end(root, ".git/logs/HEAD").unwrap_or_default();
    for line in log.lines().rev().filter_map(format_operation).take(MAX_OPERATIONS) {
        text.push_str(&line);
    }
    Some(text)
}

/// Reads the end of a file as redacted text.
fn read_end(root: &Root, path: &str) -> io::Result<String> {
    let path = ResourcePath::parse(path).map_err(io::Error::other)?;
    let opened = root.open_file(&path).map_err(io::Error::other)?;
    let from = opened.metadata.len().saturating_sub(MAX_READ_BYTES as u64);
    let end = read_at(&opened.file, from, MAX_READ_BYTES)?;
    let bytes = SecretWindow::new(&opened.file, &root.secrets).redact(from, end)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Formats a line of git's reflog: `old new name <address> seconds zone`, a tab, a message. Leaves out the name and the address.
fn format_operation(line: &str) -> Option<String> {
    let (metadata, message) = line.split_once('\t')?;
    let seconds = metadata.rsplit(' ').nth(1)?.parse().ok()?;
    let time = jiff::Timestamp::from_second(seconds).ok()?;
    Some(format!("{time:.0}  {}\n", truncate(&escape_controls(message))))
}

fn truncate(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_MESSAGE_BYTES)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::format_operation;

    #[test]
    fn a_git_operation_is_listed_without_its_author() {
        let line = "0000 4f1c9 Jane Doe <jane@example.com> 1767225600 +0100\tcommit (initial): Begin\u{1b}[2J";
        assert_eq!(format_operation(line).unwrap(), "2026-01-01T00:00:00Z  commit (initial): Begin\\u{1b}[2J\n");
        for broken in ["", "no tab", "a b\tc", "a b <c> x +0100\tm"] {
            assert_eq!(format_operation(broken), None, "{broken}");
        }
    }
}
