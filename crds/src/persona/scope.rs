//! What is known at each tag: which blocks are open, and which resources are bound there.

use super::tags::{Block, Fault, Place, Placed, Tag};
use crate::nearest::did_you_mean;
use crate::v1alpha1::ResourceDeclaration;

/// How deep blocks may be nested; each `{{else if}}` of a block is one level more.
pub const MAX_NESTING: usize = 16;

/// The faults of a template's tags, in their order. Without declarations only the blocks are looked at.
pub(super) fn faults(tags: &[Placed<'_>], declared: Option<&[ResourceDeclaration]>) -> Vec<Fault> {
    let mut scope = Scope { declared, open: Vec::new(), faults: Vec::new() };
    for placed in tags {
        scope.take(placed.place, placed.tag);
        if scope.open.iter().map(|frame| frame.known.len()).sum::<usize>() > MAX_NESTING {
            scope.fault(placed.place, format!("blocks are nested deeper than {MAX_NESTING} here."));
            return scope.faults;
        }
    }
    for frame in std::mem::take(&mut scope.open) {
        scope.fault(frame.place, format!("{{{{#{}}}}} is never closed: {{{{/{0}}}}} is missing.", frame.block));
    }
    scope.faults
}

/// The names that are not declared, and nothing else: what to say of tags of which some cannot be read.
pub(super) fn undeclared(tags: &[Placed<'_>], declared: &[ResourceDeclaration]) -> Vec<Fault> {
    let mut scope = Scope { declared: Some(declared), open: Vec::new(), faults: Vec::new() };
    for placed in tags {
        match placed.tag {
            Tag::Show(name) | Tag::Open(_, name) | Tag::ElseOpen(_, name) => _ = scope.names(placed.place, name),
            Tag::Else | Tag::Close(_) => {}
        }
    }
    scope.faults
}

struct Scope<'a> {
    declared: Option<&'a [ResourceDeclaration]>,
    open: Vec<Frame<'a>>,
    faults: Vec<Fault>,
}

/// An open block.
struct Frame<'a> {
    place: Place,
    block: Block,
    /// What each condition of the chain says in the branch that is being read: one entry a level.
    known: Vec<(&'a str, bool)>,
    has_else: bool,
}

impl<'a> Scope<'a> {
    fn fault(&mut self, place: Place, message: String) {
        self.faults.push(Fault::at(place, message));
    }

    fn take(&mut self, place: Place, tag: Tag<'a>) {
        match tag {
            Tag::Show(name) => self.show(place, name),
            Tag::Open(block, name) => {
                self.names(place, name);
                let known = vec![(name, block == Block::If)];
                self.open.push(Frame { place, block, known, has_else: false });
            }
            Tag::Else => {
                if self.turn(place, "{{else}}")
                    && let Some(frame) = self.open.last_mut()
                {
                    frame.has_else = true;
                }
            }
            Tag::ElseOpen(block, name) => {
                self.names(place, name);
                if self.turn(place, "{{else if}}")
                    && let Some(frame) = self.open.last_mut()
                {
                    frame.known.push((name, block == Block::If));
                }
            }
            Tag::Close(block) => self.close(place, block),
        }
    }

    /// Leaves the branch that is being read for the one after it.
    fn turn(&mut self, place: Place, tag: &str) -> bool {
        match self.open.last_mut() {
            Some(frame) if !frame.has_else => {
                if let Some((_, bound)) = frame.known.last_mut() {
                    *bound = !*bound;
                }
                true
            }
            Some(frame) => {
                let begun = frame.place;
                self.fault(place, format!("{tag} follows the {{{{else}}}} of the block at {begun}."));
                false
            }
            None => {
                self.fault(place, format!("{tag} stands in no block."));
                false
            }
        }
    }

    fn close(&mut self, place: Place, block: Block) {
        match self.open.pop() {
            Some(frame) if frame.block == block => {}
            Some(frame) => self.fault(
                place,
                format!("{{{{/{block}}}}} closes {{{{#{}}}}} of {}: {{{{/{0}}}}} is needed.", frame.block, frame.place),
            ),
            None => self.fault(place, format!("{{{{/{block}}}}} closes nothing.")),
        }
    }

    fn show(&mut self, place: Place, name: &'a str) {
        let Some(resource) = self.names(place, name) else { return };
        let known = self.open.iter().rev().flat_map(|frame| frame.known.iter().rev()).find(|known| known.0 == name);
        let tag = format!("{{{{resources.{name}}}}}");
        if resource.kind.is_secret() {
            let kind = resource.kind;
            let may = format!("a persona may only ask for it, {{{{#if resources.{name}}}}}");
            self.fault(place, format!("{tag} would show a secret ({kind}): {may}."));
        } else if known.is_some_and(|(_, bound)| !bound) {
            self.fault(place, format!("{tag} stands where the resource is not bound."));
        } else if known.is_none() && resource.required != Some(true) {
            let put =
                format!("put it in {{{{#if resources.{name}}}}} ... {{{{/if}}}}, or declare it with required: true");
            self.fault(place, format!("{tag} is optional, and a Job may leave it out: {put}."));
        }
    }

    fn names(&mut self, place: Place, name: &str) -> Option<&'a ResourceDeclaration> {
        let declared = self.declared?;
        let found = declared.iter().find(|resource| resource.name == name);
        if found.is_none() {
            let near = did_you_mean(name, declared.iter().map(|resource| resource.name.as_str()));
            self.fault(place, format!("resources.{name} is not declared in spec.resources.{near}"));
        }
        found
    }
}
