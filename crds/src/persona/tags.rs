//! Reads the tags of a template in linear time and without recursion.

use super::error::{Error, Position};
use crate::text::bounded;
use std::ops::Range;

/// The white space of Handlebars within a tag. Any other white space is part of a name.
pub(super) const WHITE_SPACE: [char; 4] = [' ', '\t', '\n', '\r'];

/// A tag with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PlacedTag<'a> {
    pub(super) position: Position,
    /// The bytes of the template that the tag covers, braces included.
    pub(super) span: Range<usize>,
    /// True for `{{~`, which removes the white space before the tag.
    pub(super) trims_before: bool,
    /// True for `~}}`, which removes the white space after the tag.
    pub(super) trims_after: bool,
    pub(super) tag: Tag<'a>,
}

/// An allowed tag. The texts are names of resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag<'a> {
    /// `{{resources.<name>}}`
    Show(&'a str),
    /// `{{#if resources.<name>}}` or `{{#unless resources.<name>}}`
    Open(Block, &'a str),
    /// `{{else}}`
    Else,
    /// `{{else if resources.<name>}}` or `{{else unless resources.<name>}}`
    ElseIf(Block, &'a str),
    /// `{{/if}}` or `{{/unless}}`
    Close(Block),
}

/// The kind of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Block {
    If,
    Unless,
}

/// An iterator over the tags of a template.
pub(super) struct Tags<'a> {
    rest: &'a str,
    offset: usize,
    position: Position,
}

impl<'a> Tags<'a> {
    pub(super) fn new(template: &'a str) -> Self {
        Self { rest: template, offset: 0, position: Position { line: 1, column: 1 } }
    }

    /// Advances by a number of bytes, and returns the skipped text.
    fn skip(&mut self, bytes: usize) -> &'a str {
        let (skipped, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        for c in skipped.chars() {
            if c == '\n' {
                self.position = Position { line: self.position.line + 1, column: 1 };
            } else {
                self.position.column += 1;
            }
        }
        self.offset += skipped.len();
        self.rest = rest;
        skipped
    }

    /// Skips to the next tag that is not escaped. Returns `None` at the end of the template.
    fn skip_to_tag(&mut self) -> Option<()> {
        loop {
            let text = self.skip(self.rest.find("{{")?);
            let backslashes = text.bytes().rev().take_while(|byte| *byte == b'\\').count();
            if backslashes != 1 {
                return Some(());
            }
            self.skip(escaped_braces(self.rest));
        }
    }
}

/// Returns the number of braces at the start of `text` that one preceding backslash escapes. Two backslashes escape no brace:
/// they are a literal backslash before a tag.
pub(super) fn escaped_braces(text: &str) -> usize {
    if text.starts_with("{{{{") { 4 } else { 2 }
}

impl<'a> Iterator for Tags<'a> {
    type Item = Result<PlacedTag<'a>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        self.skip_to_tag()?;
        let position = self.position;
        let start = self.offset;
        let Some(length) = self.rest.find("}}") else {
            self.rest = "";
            return Some(Err(Error::at(position, "the tag that begins here has no end: }} is missing.".to_owned())));
        };
        let whole = self.skip(length + 2);
        let inner = whole.get(2..length).unwrap_or_default();
        let (inner, trims_before) = inner.strip_prefix('~').map_or((inner, false), |inner| (inner, true));
        let (inner, trims_after) = inner.strip_suffix('~').map_or((inner, false), |inner| (inner, true));
        let span = start..self.offset;
        Some(match parse_tag(inner) {
            Ok(tag) => Ok(PlacedTag { position, span, trims_before, trims_after, tag }),
            Err(hint) => Err(Error::at(position, format!("{} is not allowed: {hint}.", bounded(whole, 80)))),
        })
    }
}

/// Parses the inside of a tag, without braces and `~`. The error is a hint.
fn parse_tag(inner: &str) -> Result<Tag<'_>, &'static str> {
    // An allowed tag has at most three words.
    let words: Vec<&str> = inner.split(WHITE_SPACE).filter(|word| !word.is_empty()).take(4).collect();
    match words.as_slice() {
        ["else"] => Ok(Tag::Else),
        ["else", word, path] => Ok(Tag::ElseIf(parse_block(word)?, resource_name(path)?)),
        [word] => match word.strip_prefix('/') {
            Some(word) => Ok(Tag::Close(parse_block(word)?)),
            None => Ok(Tag::Show(resource_name(word)?)),
        },
        [word, path] => {
            let word = word.strip_prefix('#').ok_or(ALLOWED)?;
            Ok(Tag::Open(parse_block(word)?, resource_name(path)?))
        }
        _ => Err(ALLOWED),
    }
}

const ALLOWED: &str = "allowed are {{resources.<name>}}, {{#if resources.<name>}}, {{#unless resources.<name>}}, \
     {{else}}, {{/if}} and {{/unless}}; write \\{{ for literal braces";

fn parse_block(word: &str) -> Result<Block, &'static str> {
    word.parse().map_err(|_| ALLOWED)
}

fn resource_name(path: &str) -> Result<&str, &'static str> {
    let name = path.strip_prefix("resources.").ok_or(ALLOWED)?;
    let is_name = name.len() <= 64
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    if is_name {
        Ok(name)
    } else {
        Err("a resource's name is lower-case letters, digits and '_', after \"resources.\"")
    }
}
