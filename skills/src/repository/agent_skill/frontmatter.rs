//! The file `SKILL.md`: frontmatter in YAML, and the instructions in Markdown.

use super::super::catalogue::Format;
use super::super::directory::{self, SkillDirectory};
use crate::document::Document;
use crate::finding::Finding;
use crate::yaml;

/// The line before and after the frontmatter.
const FENCE: &str = "---";

/// The longest `SKILL.md`, in characters. The instructions have a smaller limit of their own.
const MAX_CHARS: usize = 256 * 1024;

/// A `SKILL.md`.
#[derive(Debug)]
pub(super) struct Frontmatter {
    /// The frontmatter, with the lines of the file.
    pub(super) document: Document,
    /// The faults of its YAML.
    pub(super) findings: Vec<Finding>,
    /// The instructions.
    pub(super) body: String,
}

/// Reads the `SKILL.md` of a directory.
///
/// # Errors
/// The faults of the file.
pub(super) fn read(directory: &impl SkillDirectory) -> Result<Frontmatter, Vec<Finding>> {
    let text =
        directory::read_text(directory, Format::AgentSkill.file(), MAX_CHARS).map_err(|fault| vec![fault.error()])?;
    let (yaml, body) = split(&text).map_err(|fault| {
        vec![Finding::of_file(fault).hint("begin the file with ---, the fields name and description, and --- again")]
    })?;
    // The line break stands for the first fence, so that the lines are those of the file.
    let mut read = yaml::read(format!("\n{yaml}").as_bytes());
    match read.documents.pop() {
        Some(document) if read.documents.is_empty() && document.is_map() => {
            Ok(Frontmatter { document, findings: read.findings, body: body.to_owned() })
        }
        _ if read.findings.is_empty() => Err(vec![Finding::of_file("the frontmatter must be one object")]),
        _ => Err(read.findings),
    }
}

/// Splits a file into its frontmatter and its body.
fn split(text: &str) -> Result<(&str, &str), &'static str> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    if first.trim_end() != FENCE {
        return Err("has no frontmatter: the first line must be ---");
    }
    let mut end = 0;
    for line in rest.split_inclusive('\n') {
        let next = end + line.len();
        if line.trim_end() == FENCE {
            return Ok((rest.get(..end).unwrap_or_default(), rest.get(next..).unwrap_or_default()));
        }
        end = next;
    }
    Err("has a frontmatter without end: there is no second line ---")
}

#[cfg(test)]
mod tests {
    use super::split;
    use rstest::rstest;

    #[rstest]
    #[case::usual("---\nname: a\n---\nBody\n---\n", Ok(("name: a\n", "Body\n---\n")))]
    #[case::of_windows("---\r\nname: a\r\n---\r\nBody", Ok(("name: a\r\n", "Body")))]
    #[case::no_body("---\nname: a\n---", Ok(("name: a\n", "")))]
    #[case::byte_order_mark("\u{feff}---\n---\n", Ok(("", "")))]
    #[case::none("# Title\n", Err("has no frontmatter: the first line must be ---"))]
    #[case::no_end("---\nname: a\n", Err("has a frontmatter without end: there is no second line ---"))]
    fn a_file_is_split_at_the_second_fence(#[case] text: &str, #[case] expected: Result<(&str, &str), &str>) {
        assert_eq!(split(text), expected);
    }
}
