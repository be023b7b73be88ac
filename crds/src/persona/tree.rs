//! What Handlebars itself read of a template must be what we read: nothing else may run.

use super::tags::{Block, FIELD, Tag, Tags};
use handlebars::template::{HelperTemplate, Parameter, TemplateElement};
use handlebars::{Path, PathSeg, Template};

/// Compares the template's tree with its tags, one by one. The tags are balanced and nested no deeper than
/// [`MAX_NESTING`](super::MAX_NESTING), which bounds the recursion here and in the parser.
pub(super) fn agrees(template: &str) -> Result<(), String> {
    let tree = Template::compile(template).map_err(|error| disagreement(&error.to_string()))?;
    let mut found = Vec::new();
    flatten(&tree, &mut found).ok_or_else(|| disagreement("it holds a tag that is not allowed"))?;
    let read: Vec<Node> = nodes(template);
    if found == read { Ok(()) } else { Err(disagreement("its blocks are not as they seem")) }
}

/// A tag as both readings have it: `{{else if}}` is an `else` that holds a block.
#[derive(Debug, PartialEq, Eq)]
enum Node {
    Show(String),
    Open(Block, String),
    Else,
    Close,
}

fn nodes(template: &str) -> Vec<Node> {
    let mut nodes = Vec::new();
    let mut levels = Vec::new();
    for placed in Tags::new(template).flatten() {
        match placed.tag {
            Tag::Show(name) => nodes.push(Node::Show(name.to_owned())),
            Tag::Open(block, name) => {
                levels.push(1);
                nodes.push(Node::Open(block, name.to_owned()));
            }
            Tag::Else => nodes.push(Node::Else),
            Tag::ElseOpen(block, name) => {
                if let Some(level) = levels.last_mut() {
                    *level += 1;
                }
                nodes.extend([Node::Else, Node::Open(block, name.to_owned())]);
            }
            Tag::Close(_) => nodes.extend((0..levels.pop().unwrap_or(1)).map(|_| Node::Close)),
        }
    }
    nodes
}

fn flatten(template: &Template, found: &mut Vec<Node>) -> Option<()> {
    for element in &template.elements {
        match element {
            TemplateElement::RawString(_) => {}
            TemplateElement::Expression(expression) => found.push(Node::Show(shown(expression)?)),
            TemplateElement::HelperBlock(block) => {
                let (kind, name) = opened(block)?;
                found.push(Node::Open(kind, name));
                if let Some(inner) = &block.template {
                    flatten(inner, found)?;
                }
                if let Some(inverse) = &block.inverse {
                    found.push(Node::Else);
                    flatten(inverse, found)?;
                }
                found.push(Node::Close);
            }
            _ => return None,
        }
    }
    Some(())
}

fn shown(expression: &HelperTemplate) -> Option<String> {
    let plain = expression.params.is_empty()
        && expression.hash.is_empty()
        && expression.template.is_none()
        && expression.inverse.is_none()
        && expression.block_param.is_none();
    if plain { resource(&expression.name) } else { None }
}

fn opened(block: &HelperTemplate) -> Option<(Block, String)> {
    let Parameter::Name(name) = &block.name else { return None };
    match block.params.as_slice() {
        [path] if block.hash.is_empty() && block.block_param.is_none() => Some((name.parse().ok()?, resource(path)?)),
        _ => None,
    }
}

fn resource(path: &Parameter) -> Option<String> {
    let Parameter::Path(Path::Relative((segments, _))) = path else { return None };
    match segments.as_slice() {
        [PathSeg::Named(root), PathSeg::Named(name)] if root == "resources" => Some(name.clone()),
        _ => None,
    }
}

/// A sentence for a template that Handlebars reads otherwise than we do.
fn disagreement(why: &str) -> String {
    format!("{FIELD}: the template cannot be read: {why}.")
}
