//! Nodes with the depth of their trees.

use super::refuse::{MAX_TREE_DEPTH, too_deep};
use crate::error::Error;
use crate::node::Node;

/// A node and the depth of its tree.
pub(super) struct Tree {
    pub(super) node: Node,
    pub(super) depth: usize,
}

impl Tree {
    pub(super) fn leaf(node: Node) -> Self {
        Self { node, depth: 1 }
    }

    /// Returns a node whose deepest child has the depth `child_depth`.
    pub(super) fn parent(child_depth: usize, node: Node) -> Result<Self, Error> {
        if child_depth < MAX_TREE_DEPTH { Ok(Self { node, depth: child_depth + 1 }) } else { too_deep() }
    }

    /// Returns a node with one child.
    pub(super) fn wrap(self, make: impl FnOnce(Box<Node>) -> Node) -> Result<Self, Error> {
        Self::parent(self.depth, make(Box::new(self.node)))
    }

    /// Returns a node with two children.
    pub(super) fn join(self, other: Self, make: impl FnOnce(Box<Node>, Box<Node>) -> Node) -> Result<Self, Error> {
        Self::parent(self.depth.max(other.depth), make(Box::new(self.node), Box::new(other.node)))
    }

    /// Returns a node with any number of children.
    pub(super) fn gather(trees: Vec<Self>, make: impl FnOnce(Vec<Node>) -> Node) -> Result<Self, Error> {
        let depth = trees.iter().map(|tree| tree.depth).max().unwrap_or_default();
        Self::parent(depth, make(trees.into_iter().map(|tree| tree.node).collect()))
    }

    /// Returns the selection of a field. A field of `args` is a variable.
    pub(super) fn select(self, name: &str) -> Result<Self, Error> {
        match self.node {
            Node::Arguments => Ok(Self::leaf(Node::Argument(name.to_owned()))),
            _ => self.wrap(|operand| Node::Select(operand, name.to_owned())),
        }
    }
}
