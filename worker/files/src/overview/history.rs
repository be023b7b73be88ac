//! What git says was done last. Its files are read, no program of it is run: hooks and settings of a file system that
//! somebody bound would be run with it.

use crate::place::{Place, escaped};
use crate::root::Root;
use crate::secrets::{Sight, read_at};
use std::io;

/// How many moves are told.
const MAX_MOVES: usize = 5;

/// How much of the end of its log is read, in bytes.
const READ: usize = 8 * 1024;

/// The longest part of a message that is told, in bytes.
const MAX_MESSAGE: usize = 120;

/// The branch, and the last moves of `HEAD`, the latest first; none where git is not used, or elsewhere than here.
pub(super) fn of_git(root: &Root) -> Option<String> {
    let head = end_of(root, ".git/HEAD").ok()?;
    let branch = head.trim().strip_prefix("ref: refs/heads/").map_or("no branch", str::trim);
    let mut text = format!("git, on {}:\n", bounded(&escaped(branch)));
    let log = end_of(root, ".git/logs/HEAD").unwrap_or_default();
    for line in log.lines().rev().filter_map(moved).take(MAX_MOVES) {
        text.push_str(&line);
    }
    Some(text)
}

/// The last bytes of a file, as text without secrets: messages are cut.
fn end_of(root: &Root, path: &str) -> io::Result<String> {
    let place = Place::parse(path).map_err(io::Error::other)?;
    let opened = root.open_file(&place).map_err(io::Error::other)?;
    let from = opened.metadata.len().saturating_sub(READ as u64);
    let end = read_at(&opened.file, from, READ)?;
    let bytes = Sight::of(&opened.file, &root.secrets).cover(from, end)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A line of git's log of moves: `old new name <address> seconds zone`, a tab, a message. People's names are left out.
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
