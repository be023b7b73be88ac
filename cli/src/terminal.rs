//! Questions to the person at the terminal.

use crate::error::Error;
use crate::text;
use std::io::{self, BufRead, IsTerminal};

/// The longest line that is read, in bytes. A terminal limits lines to less.
const MAX_LINE: u64 = 64 * 1024;

/// The refusal of a typed line: it says what to type instead.
#[derive(Debug, PartialEq, Eq)]
pub struct Retry(pub String);

/// Returns whether a person can be asked: stdin and stderr are a terminal.
pub fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Discards what was typed before a question was shown, so that it neither answers nor approves anything.
pub fn discard_input() {
    // Fails without a terminal, and then nothing was typed.
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
}

/// Reads the next line. Returns `None` at the end of the input.
pub fn read_line() -> Option<String> {
    let mut line = Vec::new();
    let read = io::Read::take(io::stdin().lock(), MAX_LINE).read_until(b'\n', &mut line);
    match read {
        Ok(bytes) if bytes > 0 => Some(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned()),
        Ok(_) | Err(_) => None,
    }
}

/// Asks a question until the answer is yes or no. Returns whether it is yes.
///
/// # Errors
/// If the thread that reads the terminal fails.
pub async fn confirm(question: impl Into<String>) -> Result<bool, Error> {
    let question = question.into();
    ask(move |line| answer(line).ok_or_else(|| Retry("Type yes or no.".to_owned())), question)
        .await
        .map(|said| said == Some(true))
}

/// Asks a question until `read` accepts the line. Returns `None` at the end of the input.
///
/// # Errors
/// If the thread that reads the terminal fails.
pub async fn ask<T: Send + 'static>(
    read: impl Fn(&str) -> Result<T, Retry> + Send + 'static,
    question: String,
) -> Result<Option<T>, Error> {
    let asked = tokio::task::spawn_blocking(move || {
        discard_input();
        loop {
            anstream::eprint!("{question}");
            let Some(line) = read_line() else {
                anstream::eprintln!();
                return None;
            };
            match read(&line) {
                Ok(said) => return Some(said),
                Err(Retry(hint)) => text::inform(&hint),
            }
        }
    });
    asked.await.map_err(|error| Error::failed(error.to_string()))
}

/// Parses an answer to a yes-or-no question.
fn answer(line: &str) -> Option<bool> {
    let line = line.trim();
    let is = |word: &str| line.eq_ignore_ascii_case(word);
    match () {
        () if is("yes") || is("y") => Some(true),
        () if is("no") || is("n") => Some(false),
        () => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::yes("yes\r", Some(true))]
    #[case::short(" Y", Some(true))]
    #[case::no("NO", Some(false))]
    #[case::nothing("", None)]
    #[case::more("yes please", None)]
    #[case::something("yess", None)]
    fn only_a_clear_word_decides(#[case] line: &str, #[case] expected: Option<bool>) {
        assert_eq!(answer(line), expected);
    }
}
