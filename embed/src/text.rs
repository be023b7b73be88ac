//! The escaping of untrusted texts, so that these cannot control a terminal, and the texts of paths and words in messages.

use bloomery_crds::text::{alters_display, is_invisible};
use std::path::Path;

/// Removes the characters that control a terminal, except line breaks and tabs.
pub fn sanitized_lines(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !alters_display(*c)).collect()
}

/// Replaces the characters that control a terminal by blanks, so that the text is one line.
pub fn sanitized_line(text: &str) -> String {
    text.chars().map(|c| if alters_display(c) { ' ' } else { c }).collect()
}

/// Escapes the characters that are invisible or control a terminal. The result is one line in which a reader sees every
/// character.
pub fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_invisible(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

/// Returns a directory for messages. A relative path begins with a dot, so that it does not read like a word.
pub fn directory(dir: &Path) -> String {
    let shown = dir.display().to_string();
    if dir.is_absolute() || shown.starts_with('.') { shown } else { format!("./{shown}") }
}

/// The beginning of the name of an option in a message. The name ends with a backtick.
const OPTION_START: &str = "`options.";

/// Replaces the names of options in a message of this library. The message names an option as a field of
/// [`RunOptions`](crate::run::options::RunOptions), such as `` `options.model.provider` ``, or as a parameter of a request to a cluster, such as
/// `` `options.question` ``. `name_of` returns the name that the users of a host know, by the path of the field; none if the message keeps
/// the field.
pub fn with_option_names(message: &str, name_of: impl Fn(&str) -> Option<String>) -> String {
    let mut parts = message.split(OPTION_START);
    let mut named = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match part.split_once('`').and_then(|(field, rest)| Some((name_of(field)?, rest))) {
            Some((name, rest)) => named.extend([name.as_str(), rest]),
            None => named.extend([OPTION_START, part]),
        }
    }
    named
}

/// Quotes a text as one word for a shell.
pub fn shell_quoted(text: &str) -> String {
    let is_plain_char = |c: char| c.is_ascii_alphanumeric() || "/._-+,@%:".contains(c);
    let is_plain = !text.is_empty() && text.chars().all(is_plain_char);
    if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_names_the_options_in_a_message() {
        let message = "name another one with `options.memory`, or use `options.x` and `options.";
        let named = with_option_names(message, |field| (field == "memory").then(|| "--memory".to_owned()));
        assert_eq!(named, "name another one with --memory, or use `options.x` and `options.");
    }

    #[test]
    fn no_text_controls_a_terminal() {
        let text = "one\u{1b}[2J\ttwo\u{202e}\r\nthree\u{2028}\u{200d}";
        assert_eq!(sanitized_lines(text), "one[2J\ttwo\nthree\u{200d}");
        assert_eq!(sanitized_line(text), "one [2J two   three \u{200d}");
        assert_eq!(escaped(text), "one\\u{1b}[2J\\ttwo\\u{202e}\\r\\nthree\\u{2028}\\u{200d}");
    }
}
