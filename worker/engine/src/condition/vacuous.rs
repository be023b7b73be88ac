//! Finds `all()` over earlier calls or results whose truth lets a call pass: without any call, it is true.

use super::Condition;
use bloomery_cel::{Earlier, Function, Macro, Node};

impl Condition {
    /// Returns each use of `calls` and `results` under an `all()` that lets a call pass, unless the condition also asks whether there are
    /// any. `allows` says whether calls pass if the condition is true. Otherwise, they pass if it is false.
    pub(crate) fn allowing_without_items(&self, allows: bool) -> Vec<(Earlier, &str)> {
        let mut found = Vec::new();
        collect(self.program.root(), allows, &mut found);
        let nodes = self.nodes();
        found.retain(|(_, tool)| !nodes.iter().any(|node| asks_for_items(node, tool)));
        found
    }
}

/// Collects the uses in a part. `passes` says whether calls pass if the part is true.
fn collect<'a>(node: &'a Node, passes: bool, found: &mut Vec<(Earlier, &'a str)>) {
    match node {
        Node::Not(operand) => collect(operand, !passes, found),
        Node::And(sides) | Node::Or(sides) => sides.iter().for_each(|side| collect(side, passes, found)),
        Node::Conditional(parts) => {
            let [_, yes, no] = parts.as_ref();
            collect(yes, passes, found);
            collect(no, passes, found);
        }
        Node::Macro(Macro::All, over, _) => {
            if let Node::Earlier(earlier, tool) = &**over
                && passes
            {
                found.push((*earlier, tool.as_str()));
            }
        }
        _ => {}
    }
}

/// Returns whether a part is only true, or a number above 0, if a tool was called.
fn asks_for_items(node: &Node, tool: &str) -> bool {
    let is_of_tool = |node: &Node| matches!(node, Node::Earlier(_, named) if named == tool);
    match node {
        Node::Call(Function::Size, operands) => operands.iter().any(is_of_tool),
        Node::Macro(Macro::Exists | Macro::ExistsOne, over, _) => is_of_tool(over),
        Node::FromTool(_, named) => named == tool,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    #[rstest]
    #[case::to_hold("!calls('search').all(c, fromUser(c.query))", false, 1)]
    #[case::to_allow("calls('search').all(c, fromUser(c.query))", true, 1)]
    #[case::to_hold_what_is_like_all("calls('search').all(c, c.to == to)", false, 0)]
    #[case::with_a_size("size(calls('search')) == 0 || !calls('search').all(c, fromUser(c.query))", false, 0)]
    #[case::with_a_source("!fromTool(id, 'search') || !calls('search').all(c, fromUser(c.query))", false, 0)]
    #[case::over_an_argument("!recipients.all(r, fromUser(r))", false, 0)]
    #[case::exists("!results('search').exists(r, r.id == id)", false, 0)]
    fn an_all_without_items_lets_calls_pass(#[case] text: &str, #[case] allows: bool, #[case] count: usize) {
        let condition = Condition::compile(text).unwrap();
        assert_eq!(condition.allowing_without_items(allows).len(), count);
    }
}
