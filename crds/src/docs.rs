//! The documentation of a Skill (`spec.docs`): Markdown, which the agent reads section by section.
//!
//! A section begins at a header of the form `## Title`, from `#` to `######`, and ends at the next one. Lines in fenced code blocks are
//! no headers. A reference names a section by its anchor on GitHub or by its title, in any case: `#refunds`, `#Refunds`. A longer one also
//! names sections that contain it: `#refunds/limits`.

mod headers;

use crate::nearest::nearest;
use headers::{Header, headers};
use std::collections::BTreeMap;

/// The anchor of a section whose title has no letter and no digit.
const UNNAMED: &str = "section";

/// A Markdown document, divided into its sections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Docs<'a> {
    /// The text before the first header.
    pub introduction: &'a str,
    /// All sections, in the order of the document.
    pub sections: Vec<Section<'a>>,
}

/// A section of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section<'a> {
    /// The anchor of the header, as GitHub computes it. No other section of the document has it.
    pub anchor: String,
    /// The header and the text below it, up to the next header.
    pub text: &'a str,
    /// The title in the form of an anchor. Other sections may have it too.
    slug: String,
    /// The level of the header, from 1.
    level: usize,
    /// The position of the section that contains this one.
    parent: Option<usize>,
}

impl<'a> Docs<'a> {
    /// Divides a document into its sections. Every text is a document.
    pub fn new(markdown: &'a str) -> Self {
        let headers = headers(markdown);
        let ends = headers.iter().skip(1).map(|header| header.start).chain([markdown.len()]);
        let mut sections: Vec<Section<'a>> = Vec::new();
        let mut anchors = Anchors::default();
        // The sections that contain the current one, the outermost first.
        let mut open: Vec<usize> = Vec::new();
        for (Header { start, level, title }, end) in headers.iter().zip(ends) {
            open.retain(|at| sections.get(*at).is_some_and(|section| section.level < *level));
            let slug = Some(slug(title)).filter(|slug| !slug.is_empty()).unwrap_or_else(|| UNNAMED.to_owned());
            let text = markdown.get(*start..end).unwrap_or_default().trim_end();
            let parent = open.last().copied();
            open.push(sections.len());
            sections.push(Section { anchor: anchors.next(&slug), text, slug, level: *level, parent });
        }
        let introduction_end = headers.first().map_or(markdown.len(), |header| header.start);
        Self { introduction: markdown.get(..introduction_end).unwrap_or_default().trim(), sections }
    }

    /// Returns the section that a reference names. If several have this name, returns the first.
    pub fn find(&self, reference: &str) -> Option<&Section<'a>> {
        self.position(reference).and_then(|at| self.sections.get(at))
    }

    /// Returns the reference of the section whose name is most similar to the last name in `reference`, if one is similar.
    pub fn nearest(&self, reference: &str) -> Option<String> {
        let name = names(reference).pop()?;
        let near = nearest(&name, self.sections.iter().map(|section| section.anchor.as_str()))?;
        Some(format!("#{near}"))
    }

    /// Returns the text of the section that a reference names, with a list of the sections in it.
    pub fn read(&self, reference: &str) -> Option<String> {
        let at = self.position(reference)?;
        let section = self.sections.get(at)?;
        let within = self.sections.iter().skip(at + 1).take_while(|other| other.level > section.level).count();
        let lines: Vec<String> = self.outline().skip(at + 1).take(within).collect();
        Some(if lines.is_empty() {
            section.text.to_owned()
        } else {
            format!("{}\n\nSections in it:\n{}", section.text, lines.join("\n"))
        })
    }

    /// Returns a line for each section, which has its reference and is indented like its header.
    pub fn outline(&self) -> impl Iterator<Item = String> {
        self.sections.iter().map(|section| {
            let depth = self.containing(section).count();
            format!("{}- #{}", "  ".repeat(depth), section.anchor)
        })
    }

    fn position(&self, reference: &str) -> Option<usize> {
        let names = names(reference);
        let (name, outer) = names.split_last()?;
        self.sections.iter().position(|section| {
            let mut containing = self.containing(section);
            section.has_name(name) && outer.iter().rev().all(|name| containing.any(|section| section.has_name(name)))
        })
    }

    /// Returns the sections that contain a section, the innermost first.
    fn containing(&self, section: &Section<'a>) -> impl Iterator<Item = &Section<'a>> {
        let mut next = section.parent;
        std::iter::from_fn(move || {
            let parent = self.sections.get(next?)?;
            next = parent.parent;
            Some(parent)
        })
    }
}

impl Section<'_> {
    fn has_name(&self, name: &str) -> bool {
        !name.is_empty() && (self.anchor == name || self.slug == name)
    }
}

/// The anchors that are in use, each with the number of later sections of the same title.
#[derive(Debug, Default)]
struct Anchors(BTreeMap<String, usize>);

impl Anchors {
    /// Returns the anchor of the next section with this slug.
    fn next(&mut self, slug: &str) -> String {
        let mut anchor = slug.to_owned();
        while self.0.contains_key(&anchor) {
            let count = self.0.entry(slug.to_owned()).or_default();
            *count += 1;
            anchor = format!("{slug}-{count}");
        }
        self.0.insert(anchor.clone(), 0);
        anchor
    }
}

/// Returns the names in a reference, in the form of anchors.
fn names(reference: &str) -> Vec<String> {
    reference.trim().trim_start_matches('#').split('/').map(slug).collect()
}

/// Returns a title in the form of an anchor: in lower case, `-` for each blank, and without other punctuation.
fn slug(title: &str) -> String {
    let letters = title.trim().chars().flat_map(char::to_lowercase);
    let kept = letters.filter(|c| c.is_alphanumeric() || c.is_whitespace() || matches!(c, '-' | '_'));
    kept.map(|c| if c.is_whitespace() { '-' } else { c }).collect()
}

#[cfg(test)]
mod tests;
