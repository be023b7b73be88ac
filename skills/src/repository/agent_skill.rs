//! Converts an Agent Skill: a directory with a `SKILL.md`, as <https://agentskills.io/specification> describes it.

mod files;
mod frontmatter;

use super::catalogue::Catalogue;
use super::directory::SkillDirectory;
use super::options::RepositoryOptions;
use super::parts::{self, ConvertedSkill, trimmed_document};
use crate::finding::{Finding, quoted};
use crate::import::{Identity, finish};
use crate::tree::{Entry, Node, Value};
use bloomery_crds::tool_pattern::is_pattern;
use frontmatter::Frontmatter;

/// The fields of the frontmatter that a Skill has no field for.
const NOT_IMPORTED: [&str; 3] = ["license", "compatibility", "metadata"];

/// Returns whether a word of `allowed-tools` is the name of a tool, or a prefix of names: `Bash(git:*)` is neither.
pub(super) fn is_tool_name(word: &str) -> bool {
    is_pattern(word) && !word.contains(['(', ')', ','])
}

/// Converts the Agent Skill at a path of the repository.
pub(super) fn convert(
    path: &str,
    directory: &impl SkillDirectory,
    catalogue: &Catalogue,
    options: &RepositoryOptions,
) -> ConvertedSkill {
    let mut converted = ConvertedSkill::new();
    let Frontmatter { document, findings, body } = match frontmatter::read(directory) {
        Ok(frontmatter) => frontmatter,
        Err(findings) => {
            converted.checked.findings = findings;
            return converted;
        }
    };
    converted.checked.findings = findings;
    let findings = &mut converted.checked.findings;
    let name = catalogue.name(path).map(str::to_owned);
    check_name(&document.root, path, findings);
    let mut spec = spec(&document.root, name.as_deref().unwrap_or(path), findings);
    let others = &mut converted.others;
    let parts = parts::Parts {
        docs: files::docs(trimmed_document(&body), directory, findings, others),
        scripts: files::scripts(directory, options, others),
    };
    files::report_others(directory, others);
    parts::add(&mut spec, parts, options);
    let identity = Identity { name, namespace: options.namespace.clone(), ..Identity::default() };
    converted.checked = finish(converted.checked, &document, spec, identity);
    converted
}

/// Reports a name that is not that of the directory, as the format demands.
fn check_name(root: &Node, path: &str, findings: &mut Vec<Finding>) {
    let directory = path.rsplit('/').next().unwrap_or_default();
    match root.get("name") {
        None => findings.push(Finding::missing_field(&root.place.of_field("name"))),
        Some(name) if name.text() != Some(directory) => {
            let shown = name.text().map_or_else(|| name.kind().to_owned(), quoted);
            let message = format!("is {shown}, and the Skill is named after its directory, {}", quoted(directory));
            findings.push(Finding::warning(&name.place, message).hint("give both the same name"));
        }
        Some(_) => {}
    }
}

/// Returns the spec that the frontmatter describes, and reports each field that it cannot express.
fn spec(root: &Node, name: &str, findings: &mut Vec<Finding>) -> Node {
    let mut fields = Vec::new();
    let Value::Map(entries) = &root.value else { return Node { place: root.place.clone(), value: Value::Map(fields) } };
    let mut statement = Entry::at("statement", &root.place, Value::text(name));
    for entry in entries {
        match entry.name.as_str() {
            "name" => {}
            "description" => {
                if entry.node.text().is_some_and(|text| !text.is_empty()) {
                    statement = Entry::at("statement", &entry.node.place, entry.node.value.clone());
                }
                fields.push(Entry { name: "goal".to_owned(), ..entry.clone() });
            }
            "allowed-tools" => fields.extend(allowed_tools(&entry.node, findings)),
            known if NOT_IMPORTED.contains(&known) => {
                findings.push(Finding::warning(&entry.place, "is not imported: a Skill has no such field"));
            }
            _ => {
                let message = "is not imported: it is no field of an Agent Skill";
                findings.push(Finding::warning(&entry.place, message));
            }
        }
    }
    match root.get("description").map(|description| &description.value) {
        None => findings.push(Finding::missing_field(&root.place.of_field("description"))),
        Some(Value::Null) => findings.push(Finding::empty_field(&root.place.of_field("description"))),
        Some(_) => {}
    }
    let place = statement.place.clone();
    fields.insert(0, Entry::at("problem", &place, Value::Map(vec![statement])));
    Node { place: root.place.clone(), value: Value::Map(fields) }
}

/// Returns the tool policy: only the listed tools are allowed. Reports the words that name no tool.
fn allowed_tools(node: &Node, findings: &mut Vec<Finding>) -> Option<Entry> {
    let words: Vec<Node> = match &node.value {
        Value::Text { text, .. } => {
            let words = text.split_whitespace().map(|word| word.trim_end_matches(','));
            words.map(|word| Node { place: node.place.clone(), value: Value::text(word) }).collect()
        }
        Value::List(nodes) => nodes.clone(),
        _ => {
            findings.push(Finding::error(&node.place, format!("must be text or a list, and is {}", node.kind())));
            return None;
        }
    };
    let mut allowed: Vec<Node> = Vec::new();
    for word in words {
        match word.text() {
            Some(name) if is_tool_name(name) => {
                if !allowed.iter().any(|other| other.value == word.value) {
                    allowed.push(word);
                }
            }
            name => {
                let shown = name.map_or_else(|| word.kind().to_owned(), quoted);
                let message = format!("{shown} is not imported: it is not the name of a tool");
                findings.push(Finding::warning(&word.place, message));
            }
        }
    }
    let message = "becomes policy.tools.allowed: the Skill can call no other tools of its MCP server";
    let hint = "list the tools as the Skill knows them. Its scripts are tools too: script_NAME, or script_* for all";
    findings.push(Finding::warning(&node.place, message).hint(hint));
    let tools =
        Entry::at("tools", &node.place, Value::Map(vec![Entry::at("allowed", &node.place, Value::List(allowed))]));
    Some(Entry::at("policy", &node.place, Value::Map(vec![tools])))
}
