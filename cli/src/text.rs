//! Texts of others, as a terminal shows them: they must not steer it, nor turn what stands beside them round.

use crate::error::PREFIX;
use bloomery_crds::text::{is_hidden, steers};

/// Says something to whoever looks on.
pub fn inform(text: &str) {
    anstream::eprintln!("{}", sanitized_lines(text));
}

/// Says something about the command itself, as all lines of this program that do.
pub fn report(text: &str) {
    inform(&format!("{PREFIX}{text}"));
}

/// A text of several lines, without what steers.
pub fn sanitized_lines(text: &str) -> String {
    text.chars().filter(|c| matches!(c, '\n' | '\t') || !steers(*c)).collect()
}

/// A text on one line, with blanks for what steers.
pub fn sanitized_line(text: &str) -> String {
    text.chars().map(|c| if steers(c) { ' ' } else { c }).collect()
}

/// A text on one line that hides nothing: what steers or has no shape is written out.
pub fn escaped(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_invisible(c) { shown.extend(c.escape_default()) } else { shown.push(c) }
    }
    shown
}

/// A text as a shell reads it: as one word.
pub fn shell_quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,@%:".contains(c);
    let is_plain = !text.is_empty() && text.chars().all(plain);
    if is_plain { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_steers_a_terminal() {
        let text = "one\u{1b}[2J\ttwo\u{202e}\r\nthree\u{2028}\u{200d}";
        assert_eq!(sanitized_lines(text), "one[2J\ttwo\nthree\u{200d}");
        assert_eq!(sanitized_line(text), "one [2J two   three \u{200d}");
        assert_eq!(escaped(text), "one\\u{1b}[2J\\ttwo\\u{202e}\\r\\nthree\\u{2028}\\u{200d}");
    }
}
