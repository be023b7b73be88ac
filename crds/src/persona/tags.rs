//! The tags of a template, one after the other: in linear time and without recursion.

use crate::text::bounded;
use std::fmt;

/// The field that holds the template.
pub(super) const FIELD: &str = "spec.role.persona";

/// The white space of Handlebars; any other is part of a name there.
const WHITE: [char; 4] = [' ', '\t', '\n', '\r'];

/// A tag, and where it begins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Placed<'a> {
    pub(super) place: Place,
    pub(super) tag: Tag<'a>,
}

/// A tag that is allowed. The texts are names of resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tag<'a> {
    /// `{{resources.<name>}}`
    Show(&'a str),
    /// `{{#if resources.<name>}}` or `{{#unless ...}}`
    Open(Block, &'a str),
    /// `{{else}}`
    Else,
    /// `{{else if resources.<name>}}` or `{{else unless ...}}`
    ElseOpen(Block, &'a str),
    /// `{{/if}}` or `{{/unless}}`
    Close(Block),
}

/// The blocks that are allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::Display, strum::EnumString)]
#[strum(serialize_all = "lowercase")]
pub(super) enum Block {
    If,
    Unless,
}

/// A place in the template, counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    line: usize,
    column: usize,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{FIELD} (line {}, column {})", self.line, self.column)
    }
}

/// What is wrong with the template: at a place of it, or with the whole.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) place: Option<Place>,
    message: String,
}

impl Fault {
    pub(super) fn at(place: Place, message: String) -> Self {
        Self { place: Some(place), message }
    }

    pub(super) fn of_all(message: String) -> Self {
        Self { place: None, message }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.place {
            Some(place) => write!(f, "{place}: {}", self.message),
            None => write!(f, "{FIELD}: {}", self.message),
        }
    }
}

/// Reads one tag after the other.
pub(super) struct Tags<'a> {
    rest: &'a str,
    place: Place,
}

impl<'a> Tags<'a> {
    pub(super) fn new(template: &'a str) -> Self {
        Self { rest: template, place: Place { line: 1, column: 1 } }
    }

    fn skip(&mut self, bytes: usize) -> &'a str {
        let (skipped, rest) = self.rest.split_at_checked(bytes).unwrap_or((self.rest, ""));
        for c in skipped.chars() {
            if c == '\n' {
                self.place = Place { line: self.place.line + 1, column: 1 };
            } else {
                self.place.column += 1;
            }
        }
        self.rest = rest;
        skipped
    }

    /// Skips to the next tag that is not escaped; nothing where there is none. One backslash before `{{` escapes
    /// it, together with two more braces; two backslashes are a backslash before a tag.
    fn find(&mut self) -> Option<()> {
        loop {
            let text = self.skip(self.rest.find("{{")?);
            let backslashes = text.bytes().rev().take_while(|byte| *byte == b'\\').count();
            if backslashes != 1 {
                return Some(());
            }
            self.skip(if self.rest.starts_with("{{{{") { 4 } else { 2 });
        }
    }
}

impl<'a> Iterator for Tags<'a> {
    type Item = Result<Placed<'a>, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        self.find()?;
        let place = self.place;
        let Some(length) = self.rest.find("}}") else {
            self.rest = "";
            return Some(Err(Fault::at(place, "the tag that begins here has no end: }} is missing.".to_owned())));
        };
        let whole = self.skip(length + 2);
        let inner = whole.get(2..length).unwrap_or_default();
        let read = tag(inner).map(|tag| Placed { place, tag });
        Some(read.map_err(|hint| Fault::at(place, format!("{} is not allowed: {hint}.", bounded(whole, 80)))))
    }
}

fn tag(inner: &str) -> Result<Tag<'_>, &'static str> {
    let inner = inner.strip_prefix('~').unwrap_or(inner);
    let inner = inner.strip_suffix('~').unwrap_or(inner);
    let words: Vec<&str> = inner.split(WHITE).filter(|word| !word.is_empty()).take(4).collect();
    match words.as_slice() {
        ["else"] => Ok(Tag::Else),
        ["else", block, path] => Ok(Tag::ElseOpen(named(block)?, resource(path)?)),
        [only] if only.starts_with('/') => Ok(Tag::Close(named(only.trim_start_matches('/'))?)),
        [only] => Ok(Tag::Show(resource(only)?)),
        [block, path] if block.starts_with('#') => {
            Ok(Tag::Open(named(block.strip_prefix('#').unwrap_or_default())?, resource(path)?))
        }
        _ => Err(ALLOWED),
    }
}

const ALLOWED: &str = "a persona takes {{resources.<name>}}, {{#if resources.<name>}}, {{#unless resources.<name>}}, \
     {{else}} and their {{/if}} and {{/unless}}; text in braces is written \\{{";

fn named(block: &str) -> Result<Block, &'static str> {
    block.parse().map_err(|_| ALLOWED)
}

fn resource(path: &str) -> Result<&str, &'static str> {
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
