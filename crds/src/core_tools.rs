//! The tools that the engine performs itself, by name, and the names of tools in a Skill that has no MCP server
//! (`docs/explanation/tools.md`).

use crate::fault::Fault;
use crate::named_tools::{NamedTool, Place, named_tools};
use crate::nearest::{is_near, is_one_slip, nearest, nearest_prefix, suggestion};
use crate::scripts;
use crate::tool_pattern::{matches, reads_as_tool};
use crate::v1alpha1::{BankUse, ResourceType, SkillSpec};

/// Reads a part of a file.
pub const READ_FILE: &str = "read_file";

/// Lists the entries of a directory.
pub const LIST_FILES: &str = "list_files";

/// Finds lines in files.
pub const SEARCH_FILES: &str = "search_files";

/// Writes a whole file.
pub const WRITE_FILE: &str = "write_file";

/// Replaces a text in a file.
pub const EDIT_FILE: &str = "edit_file";

/// Applies a unified diff.
pub const APPLY_PATCH: &str = "apply_patch";

/// Reads more of an offloaded result.
pub const FOCUS_READ: &str = "focus_read";

/// Reads from an API.
pub const HTTP_GET: &str = "http_get";

/// Calls an API with a method that may change something.
pub const HTTP_REQUEST: &str = "http_request";

/// Reads a note.
pub const MEMORY_READ: &str = "memory_read";

/// Replaces a note.
pub const MEMORY_WRITE: &str = "memory_write";

/// Asks people a question. The answer is the result of the call.
pub const ASK_USER: &str = "ask_user";

/// Reads a section of the documentation.
pub const SKILL_DOC: &str = "skill_doc";

/// Reads a feature, which the agent then applies.
pub const APPLY_FEATURE: &str = "apply_feature";

/// Lists Skills, and invokes one in a child Job.
pub const USE_SKILL: &str = "use_skill";

/// Closes a workflow step that is not a tool.
pub const SUBGOAL_DONE: &str = "subgoal_done";

/// The core tools for files.
pub const FILES: [&str; 6] = [READ_FILE, LIST_FILES, SEARCH_FILES, WRITE_FILE, EDIT_FILE, APPLY_PATCH];

/// The core tools for APIs.
pub const HTTP: [&str; 2] = [HTTP_GET, HTTP_REQUEST];

/// All core tools, including those for resources that a Job does not bind.
pub const NAMES: [&str; 16] = [
    SUBGOAL_DONE,
    FOCUS_READ,
    ASK_USER,
    USE_SKILL,
    READ_FILE,
    LIST_FILES,
    SEARCH_FILES,
    WRITE_FILE,
    EDIT_FILE,
    APPLY_PATCH,
    HTTP_GET,
    HTTP_REQUEST,
    MEMORY_READ,
    MEMORY_WRITE,
    SKILL_DOC,
    APPLY_FEATURE,
];

/// Returns the core tools that a Job of a Skill can have.
pub fn possible(spec: &SkillSpec) -> Vec<&'static str> {
    let declares = |kind: ResourceType| spec.resources.iter().any(|declared| declared.kind == kind);
    let has_workflows = spec.policy.as_ref().is_some_and(|policy| !policy.workflows.is_empty());
    let is_possible = |name: &str| match name {
        SKILL_DOC => spec.docs.is_some(),
        APPLY_FEATURE => !spec.features.is_empty(),
        USE_SKILL => !spec.skills.is_empty(),
        SUBGOAL_DONE => has_workflows,
        MEMORY_READ => spec.bank() != BankUse::Off,
        MEMORY_WRITE => spec.bank() == BankUse::Write,
        _ if HTTP.contains(&name) => declares(ResourceType::ApiEndpoint),
        _ if FILES.contains(&name) => declares(ResourceType::Filesystem),
        _ => true,
    };
    NAMES.into_iter().filter(|name| is_possible(name)).collect()
}

/// A name in a Skill that matches none of the tools that its Jobs can have without an MCP server.
#[derive(Debug, Clone, PartialEq)]
pub struct Unmatched<'a> {
    /// The name, and its place.
    pub named: NamedTool<'a>,
    /// The tool whose name is nearest, if one is near.
    pub near: Option<String>,
}

/// Returns the names in a Skill that match neither a core tool that its Jobs can have nor a script. Steps in words are left out.
pub fn unmatched(spec: &SkillSpec) -> Vec<Unmatched<'_>> {
    let scripts = scripts::tools_of(spec);
    let known: Vec<&str> = possible(spec).into_iter().chain(scripts.keys().map(String::as_str)).collect();
    let near = |name: &str| match name.strip_suffix('*') {
        Some(prefix) => nearest_prefix(prefix, known.iter().copied()).map(|near| format!("{near}*")),
        None => nearest(name, known.iter().copied()).filter(|tool| is_near(name, tool)).map(str::to_owned),
    };
    let is_known = |name: &str| known.iter().any(|tool| matches(name, tool)) || scripts::may_match(spec, name);
    let is_tool = |named: &NamedTool<'_>| named.place != Place::Step || reads_as_tool(named.name);
    let unmatched = named_tools(spec).filter(|named| is_tool(named) && !is_known(named.name));
    unmatched.map(|named| Unmatched { near: near(named.name), named }).collect()
}

/// Returns the tools that a Skill declares or allows, or for which it has a rule, and that only an MCP server can have, without duplicates.
pub fn server_tools(spec: &SkillSpec) -> Vec<&str> {
    let is_core = |name: &str| NAMES.iter().any(|tool| matches(name, tool));
    let mut tools = Vec::new();
    for Unmatched { named, .. } in unmatched(spec) {
        let is_used = !matches!(named.place, Place::Blocked | Place::Step);
        if is_used && !is_core(named.name) && !tools.contains(&named.name) {
            tools.push(named.name);
        }
    }
    tools
}

/// Returns the rules of a Skill without an MCP server whose tool is probably a typing error of a core tool or a script: they protect nothing.
/// Other names may be those of a server that the Skill gets later.
pub fn misspelt(spec: &SkillSpec) -> Vec<Fault> {
    if spec.mcp_server.is_some() || spec.allows_unmatched() {
        return Vec::new();
    }
    let protects = |place: &Place<'_>| match place {
        Place::Approval | Place::Limit | Place::Evidence | Place::Blocked => true,
        Place::Declaration(tool) => tool.has_rules(),
        Place::Allowed(_) | Place::Step | Place::AllowedInTest => false,
    };
    let fault = |Unmatched { named, near }: Unmatched<'_>| {
        let near = near.filter(|near| is_one_slip(named.name, near))?;
        let message = format!(
            "without an MCP server, no tool matches {:?}, so the rule protects nothing{}; if a later server has the tool, set \
             spec.policy.allowUnmatched: true",
            named.name,
            suggestion(Some(&near))
        );
        Some(Fault { path: named.path, message })
    };
    // The beginning of a name is a word that other tools may begin with.
    let rules =
        unmatched(spec).into_iter().filter(|found| protects(&found.named.place) && !found.named.name.ends_with('*'));
    rules.filter_map(fault).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rstest::rstest;
    use serde_json::{Value, json};

    fn approval(tool: &str) -> Value {
        json!({"policy": {"approvals": [{"toolId": tool}]}})
    }

    /// Returns a Skill that has every core tool, with these fields.
    fn skill(fields: &Value) -> SkillSpec {
        let feature = json!({"name": "f", "testScenario": "Given x", "expectedResult": "y", "optional": true});
        let mut skill = json!({
            "problem": {"statement": "help"},
            "resources": [{"name": "code", "type": "filesystem"}, {"name": "shop", "type": "api_endpoint"}],
            "docs": "# A", "features": [feature], "skills": ["find"], "memory": {"bank": "write"},
        });
        skill.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        serde_json::from_value(skill).unwrap()
    }

    fn near_in(fields: &Value) -> Vec<(String, Option<String>)> {
        let skill = skill(fields);
        unmatched(&skill).into_iter().map(|found| (found.named.name.to_owned(), found.near)).collect()
    }

    #[rstest]
    #[case::an_approval(approval("http_gett"), "spec.policy.approvals[0].toolId", "http_gett", "http_get")]
    #[case::another_style(approval("httpRequest"), "spec.policy.approvals[0].toolId", "httpRequest", "http_request")]
    #[case::a_blocked_tool(
        json!({"policy": {"tools": {"blocked": ["http_*", "edit_fil"]}}}),
        "spec.policy.tools.blocked[1]", "edit_fil", "edit_file"
    )]
    #[case::a_declaration_with_a_rule(
        json!({"tools": [{"name": "write_files", "policy": {"requiresApproval": "always"}}]}),
        "spec.tools[0].name", "write_files", "write_file"
    )]
    #[case::a_limit(
        json!({"policy": {"limits": [{"tool": "http_requests", "count": true, "per": "job", "max": 1}]}}),
        "spec.policy.limits[0].tool", "http_requests", "http_request"
    )]
    #[case::the_nearest_of_several_scripts(
        json!({
            "scripts": {"image": "bash", "files": {"test_lint.sh": "true", "test_unit.sh": "true"}},
            "policy": {"tools": {"blocked": ["script_test_unitt"]}},
        }),
        "spec.policy.tools.blocked[0]", "script_test_unitt", "script_test_unit"
    )]
    fn a_rule_for_a_misspelt_tool_is_a_fault_without_a_server(
        #[case] fields: Value,
        #[case] path: &str,
        #[case] name: &str,
        #[case] near: &str,
    ) {
        let [Fault { path: found, message }] = &misspelt(&skill(&fields))[..] else { panic!("{fields}") };
        assert_eq!(found, path);
        assert!(message.contains(&format!("no tool matches {name:?}")), "{message}");
        assert!(message.contains(&format!("did you mean {near:?}")), "{message}");
    }

    #[rstest]
    #[case::a_core_tool(approval("http_get"))]
    #[case::every_tool(approval("*"))]
    #[case::a_tool_of_a_later_server(approval("process_refund"))]
    #[case::a_tool_that_is_only_similar(approval("list_filters"))]
    #[case::a_word_at_the_beginning(approval("user_*"))]
    #[case::an_allowed_tool(json!({"policy": {"tools": {"allowed": ["read_files"]}}}))]
    #[case::a_declaration_without_a_rule(json!({"tools": [{"name": "read_files"}]}))]
    #[case::a_step(json!({"policy": {"workflows": [{"name": "w", "steps": ["read_files", "Read file"]}]}}))]
    #[case::a_script_that_is_not_read_yet(
        json!({"scripts": {"image": "bash", "configMap": "checks"}, "policy": {"tools": {"blocked": ["script_chekc"]}}})
    )]
    #[case::with_a_server(json!({
        "mcpServer": {"service": {"name": "api", "port": 80}}, "policy": {"approvals": [{"toolId": "http_gett"}]},
    }))]
    #[case::on_purpose(json!({"policy": {"allowUnmatched": true, "approvals": [{"toolId": "http_gett"}]}}))]
    #[case::without_such_a_tool(json!({"resources": [], "policy": {"approvals": [{"toolId": "http_gett"}]}}))]
    fn other_names_are_no_fault(#[case] fields: Value) {
        assert_eq!(misspelt(&skill(&fields)), []);
    }

    #[test]
    fn names_without_a_tool_are_listed_with_the_nearest() {
        let feature = json!({"name": "f", "testScenario": "Given x", "expectedResult": "y", "allow": ["send"]});
        let fields = json!({
            "tools": [{"name": "read_file"}, {"name": "memori_*"}],
            "policy": {
                "tools": {"blocked": ["wipe_disk"], "allowed": ["list_file"]},
                "workflows": [{"name": "w", "steps": ["Look", "apply_patches"]}],
            },
            "features": [feature],
        });
        let near = |name: &str, near: Option<&str>| (name.to_owned(), near.map(str::to_owned));
        let expected = [
            near("memori_*", Some("memory_*")),
            near("list_file", Some("list_files")),
            near("wipe_disk", None),
            near("apply_patches", Some("apply_patch")),
            near("send", None),
        ];
        assert_eq!(near_in(&fields), expected);
        assert_eq!(server_tools(&skill(&fields)), ["memori_*", "list_file", "send"]);
    }

    #[rstest]
    #[case::a_script(json!({"image": "busybox", "files": {"check.sh": "true"}}), &[])]
    #[case::not_read_yet(json!({"image": "busybox", "configMap": "checks"}), &[])]
    #[case::none(Value::Null, &["script_check"])]
    fn a_script_needs_no_server(#[case] scripts: Value, #[case] expected: &[&str]) {
        let spec = json!({"problem": {"statement": "x"}, "tools": [{"name": "script_check"}], "scripts": scripts});
        assert_eq!(server_tools(&serde_json::from_value(spec).unwrap()), expected);
    }
}
