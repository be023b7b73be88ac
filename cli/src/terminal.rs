//! The terminal at which somebody sits, or not.

use std::io::{self, BufRead, IsTerminal};

/// The longest line that is read, in bytes; a terminal gives less.
const MAX_LINE: u64 = 64 * 1024;

/// Whether somebody can be asked: not where the input or the messages of this process go elsewhere.
pub fn is_here() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Throws away what was typed before anything was asked: it answers nothing, and approves nothing.
pub fn forget_typed() {
    // Where it fails, there is no terminal, and so nothing typed.
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
}

/// The next line; none at the end of the input.
pub fn read_line() -> Option<String> {
    let mut line = Vec::new();
    let read = io::Read::take(io::stdin().lock(), MAX_LINE).read_until(b'\n', &mut line);
    match read {
        Ok(bytes) if bytes > 0 => Some(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned()),
        Ok(_) | Err(_) => None,
    }
}
