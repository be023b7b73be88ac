//! The terminal at which somebody sits, or not.

use crate::error::Error;
use crate::text;
use std::io::{self, BufRead, IsTerminal};

/// The longest line that is read, in bytes; a terminal gives less.
const MAX_LINE: u64 = 64 * 1024;

/// Whether somebody can be asked: not where the input or the messages of this process go elsewhere.
pub fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Throws away what was typed before anything was asked: it answers nothing, and approves nothing.
pub fn discard_input() {
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

/// Asks whoever sits there a question that yes or no answers. Only a clear word does.
///
/// # Errors
/// If this process can ask nobody.
pub async fn confirm(question: impl Into<String>) -> Result<bool, Error> {
    let question = question.into();
    ask(move |line| answer(line).ok_or_else(|| "Type yes or no.".to_owned()), question)
        .await
        .map(|said| said == Some(true))
}

/// Asks until what is typed can be read; none where the input ends.
///
/// # Errors
/// If this process can ask nobody.
pub async fn ask<T: Send + 'static>(
    read: impl Fn(&str) -> Result<T, String> + Send + 'static,
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
                Err(instead) => text::inform(&instead),
            }
        }
    });
    asked.await.map_err(|error| Error::failed(error.to_string()))
}

/// What a typed line means, where it is clear.
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
