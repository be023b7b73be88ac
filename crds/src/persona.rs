//! The persona template of a Skill: plain text with a small subset of Handlebars
//! (`docs/explanation/engine.md`, section 2).
//!
//! | Tag | Result |
//! |---|---|
//! | `{{resources.<name>}}` | the value of the resource |
//! | `{{#if resources.<name>}}…{{/if}}` | the text, if the resource is bound |
//! | `{{#unless resources.<name>}}…{{/unless}}` | the text, if the resource is not bound |
//! | `{{else}}`, `{{else if resources.<name>}}`, `{{else unless resources.<name>}}` | another branch of the enclosing block |
//!
//! Every other tag is an error. White space works as in Handlebars: `~` in a tag removes the white space on that
//! side, and a line that contains only the tag of a block is removed. `\{{` is literal text. Values are inserted without
//! escaping.
//!
//! The module reads these four tags itself. A template library would accept many more, so that a second parser would have to
//! refuse them.

mod error;
mod render;
mod scope;
mod tags;

use crate::run::{BoundResource, ResourceSource};
use crate::text::single_line_fault;
use crate::v1alpha1::ResourceDeclaration;
pub use error::Error;
pub use scope::MAX_NESTING;
use std::collections::BTreeMap;
use tags::PlacedTag;

/// The largest template, in bytes.
pub const MAX_TEMPLATE_BYTES: usize = 32 * 1024;

/// The largest number of tags in a template. Together with [`MAX_VALUE_BYTES`] it bounds the rendered text.
pub const MAX_TAGS: usize = 128;

/// The longest value of a resource that can be rendered, in bytes.
pub const MAX_VALUE_BYTES: usize = 512;

/// The value that stands for a bound secret. No rendered text contains it, because [`check`] refuses a template that shows a secret.
pub const SECRET: &str = "(secret)";

/// Checks a template against the Skill's declared resources.
///
/// # Errors
/// Returns all errors in the order of the text: a tag that is not allowed, an undeclared resource, an optional
/// resource that is shown where it may be unbound, a secret that is shown, and a template that is too large.
pub fn check(template: &str, declared: &[ResourceDeclaration]) -> Result<(), Vec<Error>> {
    let mut errors = match read(template) {
        Ok(tags) => scope::errors(&tags, Some(declared)),
        Err((tags, mut errors)) => {
            errors.extend(scope::undeclared(&tags, declared));
            errors
        }
    };
    if errors.is_empty() {
        return Ok(());
    }
    // Errors about the whole template come last.
    errors.sort_by_key(|error| (error.position.is_none(), error.position));
    Err(errors)
}

/// Returns the names of the resources that a template uses. The value is true for a resource that is shown outside of a block that
/// tests it. A template with errors uses the resources of its correct tags.
pub fn used_resources(template: &str) -> BTreeMap<String, bool> {
    let tags = read(template).unwrap_or_else(|(tags, _)| tags);
    scope::used(&tags).into_iter().map(|(name, is_needed)| (name.to_owned(), is_needed)).collect()
}

/// Renders a template with the values of the Job's bound resources.
///
/// # Errors
/// Returns an error if a tag is not allowed, if blocks are not balanced, if a shown resource has no value, or if a value is
/// not a single line of at most [`MAX_VALUE_BYTES`] bytes.
pub fn render(template: &str, values: &BTreeMap<String, String>) -> Result<String, Vec<Error>> {
    let tags = read(template).map_err(|(_, errors)| errors)?;
    let errors = scope::errors(&tags, None);
    if !errors.is_empty() {
        return Err(errors);
    }
    for (name, value) in values {
        if let Some(fault) = single_line_fault(value, MAX_VALUE_BYTES) {
            let message = format!("the value of resources.{name} cannot be rendered: it {fault}.");
            return Err(vec![Error::of_template(message)]);
        }
    }
    render::render(template, &tags, values).map_err(|error| vec![error])
}

/// Returns the values of bound resources for [`render`]: the mount path of a file system, the URL of an API, and [`SECRET`] for
/// a secret.
pub fn values(bound: &[BoundResource]) -> BTreeMap<String, String> {
    bound
        .iter()
        .map(|resource| {
            let value = match &resource.source {
                ResourceSource::Value(value) => value.as_str(),
                ResourceSource::Mount { path, .. } => path.as_str(),
                ResourceSource::Secret(_) | ResourceSource::ForServer { .. } => SECRET,
            };
            (resource.name.clone(), value.to_owned())
        })
        .collect()
}

/// Reads the tags of a template.
///
/// # Errors
/// Returns the errors, and the tags that could be read. If the template is too large or has too many tags, returns no tags.
fn read(template: &str) -> Result<Vec<PlacedTag<'_>>, (Vec<PlacedTag<'_>>, Vec<Error>)> {
    if template.len() > MAX_TEMPLATE_BYTES {
        let message =
            format!("the template has {} bytes, and at most {MAX_TEMPLATE_BYTES} are allowed.", template.len());
        return Err((Vec::new(), vec![Error::of_template(message)]));
    }
    let mut tags = Vec::new();
    let mut errors = Vec::new();
    for tag in tags::Tags::new(template) {
        match tag {
            Ok(tag) => tags.push(tag),
            Err(error) => errors.push(error),
        }
        if tags.len() + errors.len() > MAX_TAGS {
            errors.push(Error::of_template(format!("the template has more than {MAX_TAGS} tags.")));
            return Err((Vec::new(), errors));
        }
    }
    if errors.is_empty() { Ok(tags) } else { Err((tags, errors)) }
}

#[cfg(test)]
mod tests;
