//! Questions to the person at the terminal.

use crate::error::Error;
use crate::text;
use std::io::{self, BufRead, IsTerminal};

/// The maximum length of a typed line, in bytes. Terminals allow less.
const MAX_LINE_BYTES: u64 = 64 * 1024;

/// The refusal of a typed line. Its text says what to type instead.
#[derive(Debug, PartialEq, Eq)]
pub struct Retry(pub String);

/// Returns whether a person can be asked: stdin and stderr are terminals.
pub fn is_interactive() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// Returns the name of the user of this process, for logs.
pub fn user_name() -> String {
    let name = ["USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    name.filter(|name| !name.is_empty()).unwrap_or_else(|| "the terminal".to_owned())
}

/// Discards the text that was typed before a question is shown, so that it does not answer the question.
pub fn discard_input() {
    // Without a terminal this fails, and there is nothing to discard.
    let _ = rustix::termios::tcflush(io::stdin(), rustix::termios::QueueSelector::IFlush);
}

/// Reads the next line. Returns `None` at the end of the input.
pub fn read_line() -> Option<String> {
    let mut line = Vec::new();
    let read = io::Read::take(io::stdin().lock(), MAX_LINE_BYTES).read_until(b'\n', &mut line);
    match read {
        Ok(bytes) if bytes > 0 => Some(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned()),
        Ok(_) | Err(_) => None,
    }
}

/// Asks a question until the answer is yes or no. Returns true for yes. The end of the input counts as no.
///
/// # Errors
/// If the thread that reads the terminal fails.
pub async fn confirm(question: impl Into<String>) -> Result<bool, Error> {
    let question = question.into();
    ask(move |line| parse_yes_or_no(line).ok_or_else(|| Retry("Type yes or no.".to_owned())), question)
        .await
        .map(|answer| answer == Some(true))
}

/// Asks a question until `parse` accepts the line. Returns `None` at the end of the input.
///
/// # Errors
/// If the thread that reads the terminal fails.
pub async fn ask<T: Send + 'static>(
    parse: impl Fn(&str) -> Result<T, Retry> + Send + 'static,
    question: String,
) -> Result<Option<T>, Error> {
    let answer = tokio::task::spawn_blocking(move || {
        discard_input();
        loop {
            anstream::eprint!("{question}");
            let Some(line) = read_line() else {
                anstream::eprintln!();
                return None;
            };
            match parse(&line) {
                Ok(answer) => return Some(answer),
                Err(Retry(hint)) => text::inform(&hint),
            }
        }
    });
    answer.await.map_err(|error| Error::failed(error.to_string()))
}

/// Parses an answer to a yes-or-no question.
fn parse_yes_or_no(line: &str) -> Option<bool> {
    let line = line.trim();
    let is_any_of = |words: [&str; 2]| words.iter().any(|word| line.eq_ignore_ascii_case(word));
    if is_any_of(["yes", "y"]) {
        return Some(true);
    }
    is_any_of(["no", "n"]).then_some(false)
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
    fn only_yes_or_no_is_an_answer(#[case] line: &str, #[case] expected: Option<bool>) {
        assert_eq!(parse_yes_or_no(line), expected);
    }
}
