//! Pins: digests of the tools of an MCP server, which the operator has verified for a Skill (`docs/explanation/design.md`, section 7).
//!
//! A probe lists the tools of the server. The status of the Skill keeps their pins, each attempt of a Job receives them, and its worker
//! denies the tools that differ.

use crate::canonical::Digest;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// The most tools that are pinned one by one. The others have one common digest.
pub const MAX_PINNED_TOOLS: usize = 128;

/// The largest size of the tools that are pinned one by one, in bytes of JSON. Status and run document have room for them.
pub const MAX_PINNED_BYTES: usize = 16 * 1024;

/// The longest name of a tool that is pinned on its own, in bytes.
pub const MAX_NAME_BYTES: usize = 128;

/// The hex digits of the digest of a definition.
const DEFINITION_DIGITS: usize = 32;

/// The hex digits of the digest of one part of a definition. It only says which part differs.
const PART_DIGITS: usize = 8;

/// The parts of a definition whose digests a pin contains, as people read them.
const PARTS: [&str; 3] = ["description", "input schema", "annotations"];

/// The pin of one tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct PinnedTool {
    /// The name of the tool.
    #[schemars(length(max = 128))]
    pub name: String,
    /// The digests of its definition, of its description, of its input schema and of its annotations, shortened and joined by dots.
    #[schemars(length(max = 64))]
    pub digest: String,
}

impl PinnedTool {
    /// Creates the pin of a tool. `definition` is the digest of everything that the server lists of it; `parts` are its description, its
    /// input schema and its annotations.
    pub fn new(name: &str, definition: &Digest, parts: [&Value; 3]) -> Self {
        let mut digest = definition.short(DEFINITION_DIGITS).to_owned();
        for part in parts {
            digest.push('.');
            digest.push_str(Digest::of_value(part).short(PART_DIGITS));
        }
        Self { name: name.to_owned(), digest }
    }

    /// Returns what differs in another definition of the tool, as a clause; none if the definitions are the same.
    fn difference(&self, found: &Self) -> Option<String> {
        if self.digest == found.digest {
            return None;
        }
        let parts = |pin: &Self| pin.digest.split('.').skip(1).map(str::to_owned).collect::<Vec<_>>();
        let (before, after) = (parts(self), parts(found));
        let differs = |at: &usize| before.get(*at) != after.get(*at);
        let changed: Vec<&str> = (0..PARTS.len()).filter(differs).filter_map(|at| PARTS.get(at).copied()).collect();
        Some(match changed.as_slice() {
            [] => "its title or output schema changed".to_owned(),
            [last] => format!("its {last} changed"),
            [all @ .., last] => format!("its {} and {last} changed", all.join(", ")),
        })
    }
}

/// The pins of all tools of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
pub struct ToolPins {
    /// The tools, in the order of their names. At most 128, and at most 16 KiB.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 128))]
    pub tools: Vec<PinnedTool>,
    /// The digest of all other tools together, if the server has more than that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others: Option<Digest>,
}

/// The difference between a tool and its pin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolChange {
    /// The name of the tool.
    pub tool: String,
    /// What differs, as a clause: `its description changed`, `is missing`, `is new`.
    pub change: String,
}

impl ToolChange {
    fn new(tool: &str, change: impl Into<String>) -> Self {
        Self { tool: tool.to_owned(), change: change.into() }
    }
}

impl std::fmt::Display for ToolChange {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.tool, self.change)
    }
}

/// The change of a tool that is not pinned on its own.
const AMONG_OTHERS: &str = "is one of the tools that are pinned together, and one of them changed";

impl ToolPins {
    /// Pins the listed tools. A name that is listed twice is ambiguous, and is left out.
    pub fn from_listed(listed: Vec<PinnedTool>) -> Self {
        let mut tools = Vec::new();
        let mut others = Vec::new();
        let mut bytes = 0;
        for pin in unique(listed).into_values() {
            bytes += serde_json::to_string(&pin).map_or(MAX_PINNED_BYTES, |text| text.len() + 1);
            let fits = tools.len() < MAX_PINNED_TOOLS && bytes <= MAX_PINNED_BYTES && pin.name.len() <= MAX_NAME_BYTES;
            if fits { tools.push(pin) } else { others.push(pin) }
        }
        Self { tools, others: digest_of_others(&others) }
    }

    /// Returns the digest of all pins. `spec.mcpServer.toolsDigest` of a Skill names it.
    pub fn digest(&self) -> Digest {
        let tools: Vec<[&str; 2]> = self.tools.iter().map(|pin| [pin.name.as_str(), pin.digest.as_str()]).collect();
        Digest::of_value(&json!({ "tools": tools, "others": self.others }))
    }

    /// Returns whether the pins exceed no bound of a status.
    pub fn is_bounded(&self) -> bool {
        let bytes: usize = self.tools.iter().map(|pin| pin.name.len() + pin.digest.len()).sum();
        let is_short = |pin: &PinnedTool| pin.name.len() <= MAX_NAME_BYTES && pin.digest.len() <= 64;
        self.tools.len() <= MAX_PINNED_TOOLS && bytes <= MAX_PINNED_BYTES && self.tools.iter().all(is_short)
    }

    /// Compares the tools of a listing with the pins. A listed tool without a pin is new.
    pub fn differences(&self, listed: Vec<PinnedTool>) -> Vec<ToolChange> {
        let listed = unique(listed);
        let mut changes = self.of_pinned(|name| listed.get(name));
        let pinned: BTreeSet<&str> = self.tools.iter().map(|pin| pin.name.as_str()).collect();
        let more: Vec<PinnedTool> = listed.into_values().filter(|pin| !pinned.contains(pin.name.as_str())).collect();
        let change = match &self.others {
            None => "is new",
            Some(_) if digest_of_others(&more) != self.others => AMONG_OTHERS,
            Some(_) => return changes,
        };
        changes.extend(more.iter().map(|pin| ToolChange::new(&pin.name, change)));
        changes
    }

    /// Compares the pins that were found later with these.
    pub fn changes(&self, found: &Self) -> Vec<ToolChange> {
        if self.others.is_none() && found.others.is_none() {
            return self.differences(found.tools.clone());
        }
        let pins: BTreeMap<&str, &PinnedTool> = found.tools.iter().map(|pin| (pin.name.as_str(), pin)).collect();
        let mut changes = self.of_pinned(|name| pins.get(name).copied());
        if self.others != found.others {
            changes.push(ToolChange::new("other tools", "one of the tools that are pinned together changed"));
        }
        changes
    }

    fn of_pinned<'a>(&self, find: impl Fn(&str) -> Option<&'a PinnedTool>) -> Vec<ToolChange> {
        let change = |pin: &PinnedTool| match find(&pin.name) {
            None => Some(ToolChange::new(&pin.name, "is missing")),
            Some(found) => Some(ToolChange::new(&pin.name, pin.difference(found)?)),
        };
        self.tools.iter().filter_map(change).collect()
    }
}

/// Returns the pins by name, without the names that occur twice.
fn unique(listed: Vec<PinnedTool>) -> BTreeMap<String, PinnedTool> {
    let mut by_name: BTreeMap<String, Vec<PinnedTool>> = BTreeMap::new();
    for pin in listed {
        by_name.entry(pin.name.clone()).or_default().push(pin);
    }
    let only =
        |(name, mut pins): (String, Vec<PinnedTool>)| (pins.len() == 1).then(|| pins.pop().map(|pin| (name, pin)))?;
    by_name.into_iter().filter_map(only).collect()
}

fn digest_of_others(others: &[PinnedTool]) -> Option<Digest> {
    let others: Vec<[&str; 2]> = others.iter().map(|pin| [pin.name.as_str(), pin.digest.as_str()]).collect();
    (!others.is_empty()).then(|| Digest::of_value(&json!(others)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;

    fn pin(name: &str, description: &str, schema: &str) -> PinnedTool {
        let parts = [json!(description), json!({ "title": schema }), json!({})];
        let definition = Digest::of_value(&json!([name, parts]));
        PinnedTool::new(name, &definition, [&parts[0], &parts[1], &parts[2]])
    }

    fn texts(changes: &[ToolChange]) -> Vec<String> {
        changes.iter().map(ToString::to_string).collect()
    }

    #[rstest]
    #[case::same(vec![pin("a", "x", "y"), pin("b", "x", "y")], &[])]
    #[case::order(vec![pin("b", "x", "y"), pin("a", "x", "y")], &[])]
    #[case::description(vec![pin("a", "z", "y"), pin("b", "x", "y")], &["a: its description changed"])]
    #[case::schema(vec![pin("a", "x", "z"), pin("b", "x", "y")], &["a: its input schema changed"])]
    #[case::both(vec![pin("a", "z", "z"), pin("b", "x", "y")], &["a: its description and input schema changed"])]
    #[case::missing(vec![pin("b", "x", "y")], &["a: is missing"])]
    #[case::twice(vec![pin("a", "x", "y"), pin("a", "x", "y"), pin("b", "x", "y")], &["a: is missing"])]
    #[case::new(vec![pin("a", "x", "y"), pin("b", "x", "y"), pin("c", "x", "y")], &["c: is new"])]
    fn each_difference_names_its_tool_and_what_changed(#[case] listed: Vec<PinnedTool>, #[case] expected: &[&str]) {
        let pins = ToolPins::from_listed(vec![pin("a", "x", "y"), pin("b", "x", "y")]);
        assert_eq!(texts(&pins.differences(listed.clone())), expected);
        let found = ToolPins::from_listed(listed);
        assert_eq!(texts(&pins.changes(&found)), expected);
        assert_eq!(pins.digest() == found.digest(), expected.is_empty());
    }

    #[test]
    fn another_part_of_a_definition_differs_too() {
        let value = json!("x");
        let with = |definition: &[u8]| PinnedTool::new("a", &Digest::of_bytes(definition), [&value, &value, &value]);
        let changes = ToolPins::from_listed(vec![with(b"1")]).differences(vec![with(b"2")]);
        assert_eq!(texts(&changes), ["a: its title or output schema changed"]);
    }

    #[test]
    fn the_tools_beyond_the_bound_are_pinned_together() {
        let many = || (0..300).map(|n| pin(&format!("tool-{n:03}"), "x", "y")).collect::<Vec<_>>();
        let pins = ToolPins::from_listed(many());
        assert!(pins.is_bounded() && pins.others.is_some());
        assert!(serde_json::to_string(&pins.tools).unwrap().len() <= MAX_PINNED_BYTES);
        assert_eq!(pins.differences(many()), []);
        let mut changed = many();
        changed[299] = pin("tool-299", "z", "y");
        let found = pins.differences(changed.clone());
        assert_eq!(found.len(), 300 - pins.tools.len());
        assert!(found.iter().all(|change| change.change == AMONG_OTHERS), "{found:?}");
        assert_eq!(pins.changes(&ToolPins::from_listed(changed)).len(), 1);
        assert_eq!(pins.changes(&pins), []);
    }
}
