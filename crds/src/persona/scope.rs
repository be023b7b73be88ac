//! Checks that blocks are balanced and that every shown resource is bound at its tag.

use super::error::{Error, Position};
use super::tags::{Block, PlacedTag, Tag};
use crate::nearest::did_you_mean;
use crate::v1alpha1::ResourceDeclaration;
use std::collections::BTreeMap;

/// The deepest nesting of blocks. Each `{{else if}}` adds a level.
pub const MAX_NESTING: usize = 16;

/// Returns the errors of a template's tags in the order of the tags. If `declared` is `None`, only the blocks are checked.
pub(super) fn errors(tags: &[PlacedTag<'_>], declared: Option<&[ResourceDeclaration]>) -> Vec<Error> {
    let mut scope = Scope { declared, open: Vec::new(), errors: Vec::new() };
    for placed in tags {
        scope.check_tag(placed.position, placed.tag);
        if scope.open.iter().map(|frame| frame.known.len()).sum::<usize>() > MAX_NESTING {
            scope.error(placed.position, format!("blocks are nested deeper than {MAX_NESTING} here."));
            return scope.errors;
        }
    }
    for frame in std::mem::take(&mut scope.open) {
        scope.error(frame.position, format!("{{{{#{}}}}} is never closed: {{{{/{0}}}}} is missing.", frame.block));
    }
    scope.errors
}

/// Returns only the errors about undeclared names. If some tags of a template cannot be read, the other errors may be wrong.
pub(super) fn undeclared(tags: &[PlacedTag<'_>], declared: &[ResourceDeclaration]) -> Vec<Error> {
    let mut scope = Scope { declared: Some(declared), open: Vec::new(), errors: Vec::new() };
    for placed in tags {
        match placed.tag {
            Tag::Show(name) | Tag::Open(_, name) | Tag::ElseIf(_, name) => _ = scope.declaration(placed.position, name),
            Tag::Else | Tag::Close(_) => {}
        }
    }
    scope.errors
}

/// Returns the names of a template's resources. The value is true for a resource that is shown outside of a block that tests it,
/// so that the template needs it.
pub(super) fn used<'a>(tags: &[PlacedTag<'a>]) -> BTreeMap<&'a str, bool> {
    let mut scope = Scope { declared: None, open: Vec::new(), errors: Vec::new() };
    let mut used = BTreeMap::new();
    for placed in tags {
        match placed.tag {
            Tag::Show(name) => *used.entry(name).or_default() |= scope.known(name).is_none(),
            Tag::Open(_, name) | Tag::ElseIf(_, name) => _ = used.entry(name).or_default(),
            Tag::Else | Tag::Close(_) => {}
        }
        scope.check_tag(placed.position, placed.tag);
    }
    used
}

/// The state of the check: the open blocks at the current tag, and the errors so far.
struct Scope<'a> {
    declared: Option<&'a [ResourceDeclaration]>,
    open: Vec<Frame<'a>>,
    errors: Vec<Error>,
}

/// An open block.
struct Frame<'a> {
    position: Position,
    block: Block,
    /// The resources whose state is known in the current branch: true means bound. Each `{{else if}}` adds an entry.
    known: Vec<(&'a str, bool)>,
    has_else: bool,
}

impl<'a> Scope<'a> {
    fn error(&mut self, position: Position, message: String) {
        self.errors.push(Error::at(position, message));
    }

    fn check_tag(&mut self, position: Position, tag: Tag<'a>) {
        match tag {
            Tag::Show(name) => self.show(position, name),
            Tag::Open(block, name) => {
                self.declaration(position, name);
                let known = vec![(name, block == Block::If)];
                self.open.push(Frame { position, block, known, has_else: false });
            }
            Tag::Else => {
                if self.next_branch(position, "{{else}}")
                    && let Some(frame) = self.open.last_mut()
                {
                    frame.has_else = true;
                }
            }
            Tag::ElseIf(block, name) => {
                self.declaration(position, name);
                if self.next_branch(position, "{{else if}}")
                    && let Some(frame) = self.open.last_mut()
                {
                    frame.known.push((name, block == Block::If));
                }
            }
            Tag::Close(block) => self.close(position, block),
        }
    }

    /// Starts the next branch of the current block. Reports an error and returns false if no block is open, or if the block
    /// already had its `{{else}}`.
    fn next_branch(&mut self, position: Position, tag: &str) -> bool {
        match self.open.last_mut() {
            Some(frame) if !frame.has_else => {
                // The condition of the previous branch is false in the next one.
                if let Some((_, is_bound)) = frame.known.last_mut() {
                    *is_bound = !*is_bound;
                }
                true
            }
            Some(frame) => {
                let block_start = frame.position;
                self.error(position, format!("{tag} follows the {{{{else}}}} of the block at {block_start}."));
                false
            }
            None => {
                self.error(position, format!("{tag} is outside of a block."));
                false
            }
        }
    }

    fn close(&mut self, position: Position, block: Block) {
        match self.open.pop() {
            Some(frame) if frame.block == block => {}
            Some(frame) => self.error(
                position,
                format!(
                    "{{{{/{block}}}}} closes {{{{#{}}}}} of {}: {{{{/{0}}}}} is needed.",
                    frame.block, frame.position
                ),
            ),
            None => self.error(position, format!("{{{{/{block}}}}} closes nothing.")),
        }
    }

    fn show(&mut self, position: Position, name: &'a str) {
        let Some(resource) = self.declaration(position, name) else { return };
        let known = self.known(name);
        let tag = format!("{{{{resources.{name}}}}}");
        if resource.kind.is_secret() {
            let kind = resource.kind;
            let hint = format!("a persona may only test whether it is bound, with {{{{#if resources.{name}}}}}");
            self.error(position, format!("{tag} would show a secret ({kind}): {hint}."));
        } else if known == Some(false) {
            self.error(position, format!("{tag} is in a branch where the resource is not bound."));
        } else if known.is_none() && resource.required != Some(true) {
            let hint =
                format!("put it in {{{{#if resources.{name}}}}} ... {{{{/if}}}}, or declare it with required: true");
            self.error(position, format!("{tag} is optional, and a Job may leave it out: {hint}."));
        }
    }

    /// Returns whether a resource is bound, if the open blocks test it.
    fn known(&self, name: &str) -> Option<bool> {
        let known = self.open.iter().rev().flat_map(|frame| frame.known.iter().rev()).find(|known| known.0 == name);
        known.map(|(_, is_bound)| *is_bound)
    }

    /// Returns the declaration of a resource. If the Skill has no such resource, reports an error and returns `None`. Also returns `None`
    /// if declarations are not checked.
    fn declaration(&mut self, position: Position, name: &str) -> Option<&'a ResourceDeclaration> {
        let declared = self.declared?;
        let declaration = declared.iter().find(|resource| resource.name == name);
        if declaration.is_none() {
            let near = did_you_mean(name, declared.iter().map(|resource| resource.name.as_str()));
            self.error(position, format!("resources.{name} is not declared in spec.resources.{near}"));
        }
        declaration
    }
}
