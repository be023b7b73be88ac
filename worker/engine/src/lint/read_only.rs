//! Warns of tools that a Skill declares as read-only, and whose name says that they change something.

use super::finding::Finding;
use bloomery_crds::v1alpha1::SkillSpec;

/// Verbs that change something, and that are rarely nouns.
const VERBS: [&str; 28] = [
    "buy",
    "cancel",
    "create",
    "delete",
    "destroy",
    "drop",
    "edit",
    "execute",
    "grant",
    "insert",
    "invite",
    "modify",
    "move",
    "overwrite",
    "pay",
    "publish",
    "purchase",
    "refund",
    "remove",
    "rename",
    "reset",
    "revoke",
    "send",
    "transfer",
    "update",
    "upload",
    "wipe",
    "write",
];

pub(super) fn findings(spec: &SkillSpec) -> Vec<Finding> {
    let read_only = spec.tools.iter().enumerate().filter(|(_, tool)| tool.read_only == Some(true));
    let changing = read_only.filter(|(_, tool)| VERBS.contains(&first_word(&tool.name).as_str()));
    changing
        .map(|(at, tool)| {
            let message = format!(
                "{} is readOnly, and its name says that it changes something: policy.effects does not apply to it, and a lost \
                 call is repeated",
                tool.name
            );
            Finding::warning(format!("spec.tools[{at}].readOnly"), message)
                .hint("set readOnly: true only for tools that change nothing")
        })
        .collect()
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
    use rstest::rstest;
    use serde_json::json;

    #[rstest]
    #[case::a_verb("send_money", 1)]
    #[case::a_prefix("delete_*", 1)]
    #[case::a_hump("sendMoney", 1)]
    #[case::another_verb("get_payees", 0)]
    #[case::a_longer_word("sender_of", 0)]
    #[case::everything("*", 0)]
    fn a_verb_that_changes_something_is_not_read_only(#[case] name: &str, #[case] count: usize) {
        let spec = json!({"problem": {"statement": "x"}, "tools": [{"name": name, "readOnly": true}]});
        assert_eq!(findings(&serde_json::from_value(spec).unwrap()).len(), count);
    }
}
