//! Renders a template whose tags were read and whose blocks are balanced.

use super::error::Error;
use super::tags::{Block, PlacedTag, Tag, WHITE_SPACE, escaped_braces};
use std::collections::BTreeMap;

/// Renders the template. A resource counts as bound if it has a value that is not empty.
///
/// # Errors
/// Returns an error for the first visible tag whose resource has no value.
pub(super) fn render(
    template: &str,
    tags: &[PlacedTag<'_>],
    values: &BTreeMap<String, String>,
) -> Result<String, Error> {
    let is_bound = |name: &str| values.get(name).is_some_and(|value| !value.is_empty());
    let condition_is_true = |block, name: &str| is_bound(name) == (block == Block::If);
    let mut output = Output::default();
    let mut end_of_last_tag = 0;
    for placed in tags {
        let text = unescaped(template.get(end_of_last_tag..placed.span.start).unwrap_or_default(), true);
        let is_value = matches!(placed.tag, Tag::Show(_));
        let is_alone = !is_value && is_alone_on_its_line(template, placed);
        output.push_text(&text, |text| {
            if placed.trims_before {
                text.trim_end()
            } else if is_alone {
                text.trim_end_matches(BLANK)
            } else {
                text
            }
        });
        end_of_last_tag = placed.span.end;
        output.trims_next = placed.trims_after;
        if !is_value {
            output.trims_next_line = is_alone;
        }
        match placed.tag {
            Tag::Show(_) if !output.is_visible() => {}
            Tag::Show(name) => {
                let Some(value) = values.get(name) else {
                    let message = format!("{{{{resources.{name}}}}} has no value: the resource is not bound.");
                    return Err(Error::at(placed.position, message));
                };
                output.text.push_str(value);
            }
            Tag::Open(block, name) => {
                let is_visible = condition_is_true(block, name);
                output.blocks.push(Branch { is_visible, had_visible: is_visible });
            }
            Tag::ElseIf(block, name) => output.next_branch(condition_is_true(block, name)),
            Tag::Else => output.next_branch(true),
            Tag::Close(_) => _ = output.blocks.pop(),
        }
    }
    let text = unescaped(template.get(end_of_last_tag..).unwrap_or_default(), false);
    output.push_text(&text, |text| text);
    Ok(output.text)
}

/// White space within a line.
const BLANK: [char; 2] = [' ', '\t'];
const LINE_BREAK: [char; 2] = ['\n', '\r'];

/// The rendered text, and what the rendering of the next part depends on.
#[derive(Default)]
struct Output {
    text: String,
    /// The current branch of each open block.
    blocks: Vec<Branch>,
    /// True if the white space at the start of the next text is removed.
    trims_next: bool,
    /// True if the blanks and the line break at the start of the next text are removed.
    trims_next_line: bool,
}

/// A branch of an `{{#if}}` or `{{#unless}}` block.
struct Branch {
    is_visible: bool,
    /// True if this branch or an earlier one is visible. Later branches are then hidden.
    had_visible: bool,
}

impl Output {
    fn is_visible(&self) -> bool {
        self.blocks.iter().all(|branch| branch.is_visible)
    }

    /// Begins the next branch of the innermost block.
    fn next_branch(&mut self, condition_is_true: bool) {
        if let Some(branch) = self.blocks.last_mut() {
            branch.is_visible = condition_is_true && !branch.had_visible;
            branch.had_visible |= condition_is_true;
        }
    }

    /// Appends the text between two tags, if it is visible. Removes the white space that the tag before it trims. `trim_end`
    /// removes the white space that the tag after it trims.
    fn push_text(&mut self, text: &str, trim_end: impl Fn(&str) -> &str) {
        if text.is_empty() || (self.trims_next && text.trim_matches(WHITE_SPACE).is_empty()) {
            return;
        }
        let trimmed = if self.trims_next {
            text.trim_start()
        } else if self.trims_next_line {
            without_first_line_break(text.trim_start_matches(BLANK))
        } else {
            text
        };
        self.trims_next_line = false;
        if self.is_visible() {
            self.text.push_str(trim_end(trimmed));
        }
    }
}

fn without_first_line_break(text: &str) -> &str {
    text.strip_prefix("\r\n").or_else(|| text.strip_prefix('\n')).unwrap_or(text)
}

/// Returns whether the line of this tag contains only the tag and white space.
fn is_alone_on_its_line(template: &str, placed: &PlacedTag<'_>) -> bool {
    let before = template.get(..placed.span.start).unwrap_or_default().trim_end_matches(BLANK);
    let after = template.get(placed.span.end..).unwrap_or_default();
    let ends_line = after.is_empty() || after.trim_start_matches(BLANK).starts_with(LINE_BREAK);
    ends_line && (before.is_empty() || before.ends_with(LINE_BREAK))
}

/// Removes the backslashes that escape braces or, directly before a tag, another backslash.
fn unescaped(text: &str, is_before_tag: bool) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.find("{{").and_then(|at| rest.split_at_checked(at)) {
        let (braces, after) = after.split_at_checked(escaped_braces(after)).unwrap_or((after, ""));
        plain.push_str(before.strip_suffix('\\').unwrap_or(before));
        plain.push_str(braces);
        rest = after;
    }
    let is_escaped = is_before_tag && rest.ends_with("\\\\");
    plain.push_str(if is_escaped { rest.strip_suffix('\\').unwrap_or(rest) } else { rest });
    plain
}
