//! Finds the headers of a Markdown document (ATX headings of `CommonMark`).

/// The deepest level of a header.
const MAX_LEVEL: usize = 6;

/// The largest indentation of a header or a fence. A line with a larger one is code or text.
const MAX_INDENTATION: usize = 3;

/// A header of a document.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Header<'a> {
    /// The position of its line in the document, in bytes.
    pub(super) start: usize,
    /// The level, from 1.
    pub(super) level: usize,
    /// The title.
    pub(super) title: &'a str,
}

/// The fence of a code block.
#[derive(Debug, Clone, Copy)]
struct Fence {
    mark: char,
    length: usize,
}

/// Returns the headers outside of fenced code blocks, in their order.
pub(super) fn headers(markdown: &str) -> Vec<Header<'_>> {
    let mut headers = Vec::new();
    let mut open_fence: Option<Fence> = None;
    let mut start = 0;
    for line in markdown.split_inclusive('\n') {
        match open_fence {
            Some(fence) if fence.is_closed_by(line) => open_fence = None,
            Some(_) => {}
            None => {
                open_fence = Fence::opened_by(line);
                headers.extend(read_header(line).map(|(level, title)| Header { start, level, title }));
            }
        }
        start += line.len();
    }
    headers
}

/// Returns the level and the title, if a line is a header.
fn read_header(line: &str) -> Option<(usize, &str)> {
    let text = unindented(line)?;
    let rest = text.trim_start_matches('#');
    let level = text.len() - rest.len();
    let is_separated = rest.is_empty() || rest.starts_with(char::is_whitespace);
    if !(1..=MAX_LEVEL).contains(&level) || !is_separated {
        return None;
    }
    let title = rest.trim();
    // Marks at the end belong to the title unless a blank is before them.
    let without_marks = title.trim_end_matches('#');
    let is_closed = without_marks.is_empty() || without_marks.ends_with(char::is_whitespace);
    Some((level, if is_closed { without_marks.trim_end() } else { title }))
}

impl Fence {
    fn opened_by(line: &str) -> Option<Self> {
        let text = unindented(line)?;
        let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let rest = text.trim_start_matches(mark);
        let length = text.len() - rest.len();
        // A line such as "```x```" is code within a paragraph.
        (length >= 3 && !(mark == '`' && rest.contains('`'))).then_some(Self { mark, length })
    }

    fn is_closed_by(self, line: &str) -> bool {
        unindented(line).is_some_and(|text| {
            let rest = text.trim_start_matches(self.mark);
            text.len() - rest.len() >= self.length && rest.trim().is_empty()
        })
    }
}

/// Returns a line without its indentation, if that is small enough for a header or a fence.
fn unindented(line: &str) -> Option<&str> {
    let text = line.trim_start_matches(' ');
    (line.len() - text.len() <= MAX_INDENTATION).then_some(text)
}
