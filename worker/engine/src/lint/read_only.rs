//! Warns of tools that a Skill declares as read-only, and whose name says that they change something.

use super::finding::Finding;
use super::known_tools::KnownTools;
use crate::core_tools;
use bloomery_crds::v1alpha1::{SkillSpec, ToolDeclaration};

/// Verbs that change something, and that are rarely nouns.
const VERBS: [&str; 38] = [
    "add",
    "book",
    "buy",
    "cancel",
    "create",
    "delete",
    "destroy",
    "drop",
    "edit",
    "execute",
    "forward",
    "grant",
    "insert",
    "invite",
    "make",
    "modify",
    "move",
    "overwrite",
    "pay",
    "post",
    "publish",
    "purchase",
    "refund",
    "remove",
    "rename",
    "reply",
    "reset",
    "revoke",
    "schedule",
    "send",
    "set",
    "share",
    "transfer",
    "update",
    "upload",
    "wipe",
    "wire",
    "write",
];

pub(super) fn findings(spec: &SkillSpec, known: &KnownTools) -> Vec<Finding> {
    let read_only = spec.tools.iter().enumerate().filter(|(_, tool)| tool.read_only == Some(true));
    read_only
        .filter_map(|(at, tool)| {
            let mut names = [tool.name.as_str()].into_iter().chain(described_by(tool, spec, known));
            let name = names.find(|name| VERBS.contains(&first_word(name).as_str()))?;
            let message = format!(
                "{name} is readOnly, and its name says that it changes something: policy.effects does not apply to it, and a lost \
                 call is repeated"
            );
            let finding = Finding::warning(format!("spec.tools[{at}].readOnly"), message)
                .hint("set readOnly: true only for tools that change nothing");
            Some(finding)
        })
        .collect()
}

/// Returns the tools of the server that are read-only because of a declaration, which may be a prefix.
fn described_by<'a>(
    declared: &'a ToolDeclaration,
    spec: &'a SkillSpec,
    known: &'a KnownTools,
) -> impl Iterator<Item = &'a str> {
    let core = core_tools::NAMES;
    let names = known.matching(&declared.name).map(|(name, _)| name).filter(move |name| !core.contains(name));
    names.filter(move |name| spec.declaration_of(name).is_some_and(|nearest| nearest.name == declared.name))
}

/// Returns the first word of a name in lower case: `send` of `send_money`, `sendMoney` and `SendMoney`.
fn first_word(name: &str) -> String {
    let mut word = String::new();
    for c in name.chars() {
        let ends = !c.is_alphanumeric() || c.is_uppercase() && word.chars().count() > 1;
        if ends {
            break;
        }
        word.extend(c.to_lowercase());
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint::ServerTool;
    use rstest::rstest;
    use serde_json::{Value, json};

    #[rstest]
    #[case::a_verb("send_money", 1)]
    #[case::a_prefix("delete_*", 1)]
    #[case::a_hump("sendMoney", 1)]
    #[case::another_verb("get_payees", 0)]
    #[case::a_longer_word("sender_of", 0)]
    #[case::everything("*", 1)]
    #[case::a_beginning("w*", 1)]
    #[case::a_beginning_of_reads("get_*", 0)]
    fn a_verb_that_changes_something_is_not_read_only(#[case] name: &str, #[case] count: usize) {
        let spec = json!({"problem": {"statement": "x"}, "tools": [{"name": name, "readOnly": true}]});
        assert_eq!(found(spec), count);
    }

    #[test]
    fn a_declaration_of_its_own_describes_a_tool() {
        let tools = json!([{"name": "*", "readOnly": true}, {"name": "wire_money"}]);
        assert_eq!(found(json!({"problem": {"statement": "x"}, "tools": tools})), 0);
    }

    /// Returns the number of findings for a server with two tools.
    fn found(spec: Value) -> usize {
        let (spec, schema) = (serde_json::from_value(spec).unwrap(), json!({"type": "object"}));
        let listed = ["get_payees", "wire_money"].map(|name| ServerTool { name, arguments: &schema, output: None });
        let known = KnownTools::new(&spec, listed);
        findings(&spec, &known).len()
    }
}
