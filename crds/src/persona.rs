//! The persona's template (`docs/explanation/engine.md`, section 2): Handlebars, of which our own reading allows only
//! `{{resources.<name>}}`, `{{#if}}` and `{{#unless}}` of the same, and `{{else}}`.
//!
//! Strict mode alone does not notice an unknown name within `#if`, default escaping corrupts prompts, and the
//! parser recurses: so every tag is read here first, without recursion, and then compared with what Handlebars
//! itself read of the template.

mod scope;
mod tags;
mod tree;

use crate::run::{BoundResource, ResourceSource};
use crate::text::line_fault;
use crate::v1alpha1::ResourceDeclaration;
use handlebars::Handlebars;
pub use scope::MAX_NESTING;
use std::collections::BTreeMap;
use tags::{FIELD, Fault, Placed};

/// The largest template, in bytes.
pub const MAX_TEMPLATE: usize = 32 * 1024;

/// How many tags a template may have: together with [`MAX_VALUE`] it bounds what is rendered.
pub const MAX_TAGS: usize = 128;

/// The longest value that is rendered, in bytes.
pub const MAX_VALUE: usize = 512;

/// What stands for the value of a bound secret. [`check`] refuses a template that would show it.
pub const SECRET: &str = "(secret)";

/// Checks a persona against the Skill's declared resources: all faults at once in the order of the text, each a
/// sentence that names its place.
///
/// # Errors
/// A tag that is not allowed, an undeclared resource, an optional one that is shown where it may be unbound, a
/// secret that is shown, and a template that is too large.
pub fn check(template: &str, declared: &[ResourceDeclaration]) -> Result<(), Vec<String>> {
    let mut faults = match read(template) {
        Ok(tags) => scope::faults(&tags, Some(declared)),
        Err((tags, mut faults)) => {
            faults.extend(scope::undeclared(&tags, declared));
            faults
        }
    };
    if !faults.is_empty() {
        faults.sort_by_key(|fault| (fault.place.is_none(), fault.place));
        return Err(sentences(&faults));
    }
    tree::agrees(template).map_err(|fault| vec![fault])
}

/// Renders a persona with the values of the Job's resources; one that is not bound has none. Lines that hold
/// nothing but a block's tag vanish, as in Handlebars.
///
/// # Errors
/// A template that [`check`] refuses whatever is declared, a tag whose resource has no value, and a value that is
/// not one line of at most [`MAX_VALUE`] bytes.
pub fn render(template: &str, values: &BTreeMap<String, String>) -> Result<String, String> {
    let tags = read(template).map_err(|(_, faults)| sentences(&faults).join(" "))?;
    let faults = scope::faults(&tags, None);
    if !faults.is_empty() {
        return Err(sentences(&faults).join(" "));
    }
    tree::agrees(template)?;
    for (name, value) in values {
        if let Some(fault) = line_fault(value, MAX_VALUE) {
            return Err(format!("{FIELD}: the value of resources.{name} cannot be rendered: it {fault}."));
        }
    }
    let mut engine = Handlebars::new();
    engine.register_escape_fn(handlebars::no_escape);
    engine.set_strict_mode(true);
    engine
        .render_template(template, &serde_json::json!({ "resources": values }))
        .map_err(|error| format!("{FIELD}: the template cannot be rendered: {error}."))
}

/// The values that a persona is rendered with: a file system is its mount path, a secret is [`SECRET`].
pub fn values(bound: &[BoundResource]) -> BTreeMap<String, String> {
    bound
        .iter()
        .map(|resource| {
            let value = match &resource.source {
                ResourceSource::Value(value) => value.as_str(),
                ResourceSource::Mount { path, .. } => path.as_str(),
                ResourceSource::Secret(_) => SECRET,
            };
            (resource.name.clone(), value.to_owned())
        })
        .collect()
}

fn sentences(faults: &[Fault]) -> Vec<String> {
    faults.iter().map(Fault::to_string).collect()
}

/// The tags of a template. Where some cannot be read: the others, and the faults.
fn read(template: &str) -> Result<Vec<Placed<'_>>, (Vec<Placed<'_>>, Vec<Fault>)> {
    if template.len() > MAX_TEMPLATE {
        let message = format!("the template has {} bytes, and at most {MAX_TEMPLATE} are taken.", template.len());
        return Err((Vec::new(), vec![Fault::of_all(message)]));
    }
    let mut tags = Vec::new();
    let mut faults = Vec::new();
    for tag in tags::Tags::new(template) {
        match tag {
            Ok(tag) => tags.push(tag),
            Err(fault) => faults.push(fault),
        }
        if tags.len() + faults.len() > MAX_TAGS {
            faults.push(Fault::of_all(format!("the template has more than {MAX_TAGS} tags.")));
            return Err((Vec::new(), faults));
        }
    }
    if faults.is_empty() { Ok(tags) } else { Err((tags, faults)) }
}

#[cfg(test)]
mod tests;
