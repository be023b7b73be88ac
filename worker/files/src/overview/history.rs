//! The last git operations. They are read from git's files: running git would run hooks and settings of a file system that
//! is not trusted.

use crate::place::{Place, escaped};
use crate::root::Root;
use crate::secrets::{SecretWindow, read_at};
use std::io;

/// The limit on the moves of `HEAD` listed.
const MAX_MOVES: usize = 5;

/// The part of the log that is read from its end, in bytes.
const READ: usize = 8 * 1024;

/// The limit on a message, in bytes.
const MAX_MESSAGE: usize = 120;

/// Lists the branch and the last moves of `HEAD`, latest first. Returns `None` without a `.git` directory at the root.
pub(super) fn recent_moves(root: &Root) -> Option<String> {
    let head = end_of(root, ".git/HEAD").ok()?;
    let branch = head.trim().strip_prefix("ref: refs/heads/").map_or("no branch", str::trim);
    let mut text = format!("git, on {}:\n", bounded(&escaped(branch)));
    let log = end_of(root, ".git/logs/HEAD").unwrap_or_default();
    for line in log.lines().rev().filter_map(moved).take(MAX_MOVES) {
        text.push_str(&line);
    }
    Some(text)
}

/// Returns the last bytes of a file as redacted text.
fn end_of(root: &Root, path: &str) -> io::Result<String> {
    let place = Place::parse(path).map_err(io::Error::other)?;
    let opened = root.open_file(&place).map_err(io::Error::other)?;
    let from = opened.metadata.len().saturating_sub(READ as u64);
    let end = read_at(&opened.file, from, READ)?;
    let bytes = SecretWindow::new(&opened.file, &root.secrets).cover(from, end)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Formats a line of git's reflog: `old new name <address> seconds zone`, a tab, a message. People's names are left out.
fn moved(line: &str) -> Option<String> {
    let (who, message) = line.split_once('\t')?;
    let seconds = who.rsplit(' ').nth(1)?.parse().ok()?;
    let time = jiff::Timestamp::from_second(seconds).ok()?;
    Some(format!("{time:.0}  {}\n", bounded(&escaped(message))))
}

fn bounded(text: &str) -> &str {
    text.get(..text.floor_char_boundary(MAX_MESSAGE)).unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::moved;

    #[test]
    fn a_move_is_told_without_who_made_it() {
        let line = "0000 4f1c9 Jane Doe <jane@example.com> 1767225600 +0100\tcommit (initial): Begin\u{1b}[2J";
        assert_eq!(moved(line).unwrap(), "2026-01-01T00:00:00Z  commit (initial): Begin\\u{1b}[2J\n");
        for broken in ["", "no tab", "a b\tc", "a b <c> x +0100\tm"] {
            assert_eq!(moved(broken), None, "{broken}");
        }
    }
}
